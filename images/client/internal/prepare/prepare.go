// Package prepare writes the files that a server is to serve, on the node itself.
package prepare

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/contract"
)

const (
	blockBytes      = 1 << 20
	temporarySuffix = ".part"
	digestSuffix    = ".sha256"
	maximumReserve  = 256 << 20
	reserveShare    = 20 // a 20th of the file system stays free
)

// Options of a preparation.
type Options struct {
	Directory    string
	Sizes        []int64
	UID, GID     int   // of the files; only root can give them away
	Reserve      int64 // bytes to leave free; negative: the lesser of 5 % of the file system and 256 MiB
	Progress     io.Writer
	freeAndTotal func(directory string) (free, total int64, err error)
}

// Prepared is the line that is printed for each file.
type Prepared struct {
	Record string `json:"record"`
	Bytes  int64  `json:"bytes"`
	Reused bool   `json:"reused"`
}

// Run brings every file about. Nothing is written if not all of them fit. When ctx is done it ends with that error and
// leaves no part of a file.
func Run(ctx context.Context, options Options) error {
	if options.freeAndTotal == nil {
		options.freeAndTotal = freeAndTotal
	}
	if err := removeTemporary(options.Directory); err != nil {
		return err
	}
	var missing []int64
	for _, size := range options.Sizes {
		if !isThere(options.Directory, size) {
			missing = append(missing, size)
		}
	}
	if err := options.checkSpace(missing); err != nil {
		return err
	}
	if err := openToAll(options.Directory); err != nil {
		return err
	}
	for _, size := range options.Sizes {
		reused := isThere(options.Directory, size)
		if !reused {
			if err := options.write(ctx, size); err != nil {
				return fmt.Errorf("%s: %w", name(size), err)
			}
		}
		if err := options.give(size); err != nil {
			return err
		}
		if err := json.NewEncoder(options.Progress).Encode(Prepared{"Prepared", size, reused}); err != nil {
			return err
		}
	}
	return nil
}

func name(size int64) string { return strconv.FormatInt(size, 10) + ".bin" }

func isThere(directory string, size int64) bool {
	path := filepath.Join(directory, name(size))
	content, err := os.Stat(path)
	digest, digestErr := os.Stat(path + digestSuffix)
	return err == nil && digestErr == nil && content.Size() == size && digest.Size() > 0
}

// ours matches what an interrupted run leaves behind. A directory of the host may hold other people's files too.
var ours = regexp.MustCompile(`^[0-9]+\.bin(\` + digestSuffix + `)?\` + temporarySuffix + `$`)

func removeTemporary(directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if ours.MatchString(entry.Name()) {
			if err := os.Remove(filepath.Join(directory, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func freeAndTotal(directory string) (free, total int64, err error) {
	var system unix.Statfs_t
	if err := unix.Statfs(directory, &system); err != nil {
		return 0, 0, err
	}
	block := int64(system.Bsize) // 32 bits wide on some architectures
	return int64(system.Bavail) * block, int64(system.Blocks) * block, nil
}

func (o Options) checkSpace(missing []int64) error {
	var needed int64
	for _, size := range missing {
		needed += size
	}
	if needed == 0 {
		return nil
	}
	free, total, err := o.freeAndTotal(o.Directory)
	if err != nil {
		return err
	}
	reserve := o.Reserve
	if reserve < 0 {
		reserve = min(total/reserveShare, maximumReserve)
	}
	// Files of a wrong size are replaced, but only once the new one is whole: their space does not count.
	if needed <= free-reserve {
		return nil
	}
	message := fmt.Sprintf("the files need %s and %s are to stay free, but only %s are: take larger sizes out of spec.fileSizes, "+
		"free space, or choose another spec.storage", inUnits(needed), inUnits(reserve), inUnits(free))
	return &contract.Failure{Reason: "InsufficientStorage", Message: message}
}

func inUnits(number int64) string {
	if number >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(number)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(number)/(1<<20))
}

// write makes a file of random content and the file of its digest; each appears whole or not at all.
func (o Options) write(ctx context.Context, size int64) error {
	path := filepath.Join(o.Directory, name(size))
	// The old digest goes first: a file is there only once its digest is.
	if err := os.Remove(path + digestSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	digest := sha256.New()
	random, err := randomStream()
	if err != nil {
		return err
	}
	err = whole(path, func(file *os.File) error {
		buffer := make([]byte, blockBytes)
		for left := size; left > 0; {
			if err := ctx.Err(); err != nil {
				return err
			}
			block := buffer[:min(left, blockBytes)]
			clear(block)
			random.XORKeyStream(block, block)
			digest.Write(block)
			if _, err := file.Write(block); err != nil {
				return err
			}
			left -= int64(len(block))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return whole(path+digestSuffix, func(file *os.File) error {
		_, err := fmt.Fprintln(file, hex.EncodeToString(digest.Sum(nil)))
		return err
	})
}

// randomStream is AES in counter mode under a random key: as fast as the disk, and it does not compress.
func randomStream() (cipher.Stream, error) {
	seed := make([]byte, 16+aes.BlockSize)
	if _, err := rand.Read(seed); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(seed[:16])
	if err != nil {
		return nil, err
	}
	return cipher.NewCTR(block, seed[16:]), nil
}

// whole writes a file under another name, makes sure that it is on the disk, and then gives it its name.
func whole(path string, fill func(*os.File) error) error {
	file, err := os.OpenFile(path+temporarySuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err = fill(file); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(path+temporarySuffix, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+temporarySuffix))
	}
	return syncDirectory(filepath.Dir(path))
}

func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// give makes the owner of a file the one that asks about its pages, and lets everybody read it.
func (o Options) give(size int64) error {
	path := filepath.Join(o.Directory, name(size))
	for _, one := range []string{path, path + digestSuffix} {
		if os.Geteuid() == 0 {
			if err := os.Chown(one, o.UID, o.GID); err != nil {
				return err
			}
		}
		if err := os.Chmod(one, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// openToAll lets the server and the agent, which are not root, into a directory that root keeps for itself.
func openToAll(directory string) error {
	information, err := os.Stat(directory)
	if err != nil || os.Geteuid() != 0 || information.Mode()&0o005 == 0o005 {
		return err
	}
	return os.Chmod(directory, information.Mode()|0o005)
}
