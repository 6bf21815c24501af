// Package prepare writes the files that a server will serve, on the node itself.
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
	"slices"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/contract"
)

const (
	blockBytes = 1 << 20
	// Free by default: a kubelet evicts pods below 15% of a file system, and further growth needs some room, too.
	reservePercent = 15
	reserveBytes   = 1 << 30
)

// Options are the options of a preparation.
type Options struct {
	Directory    string // the files are in Folder within it
	Sizes        []int64
	Receive      int64 // bytes that uploads may need; 0: there are none
	UID, GID     int   // of the files; only root can change them
	Reserve      int64 // bytes to leave free; negative: 15% of the file system and 1 GiB
	Most         int64 // bytes of all files in Folder; 0: no limit
	Progress     io.Writer
	freeAndTotal func(directory string) (free, total int64, err error)
}

// Prepared is the line that is printed for each file.
type Prepared struct {
	Record string `json:"record"`
	Bytes  int64  `json:"bytes"`
	Reused bool   `json:"reused"`
}

// Run creates all files. It writes nothing if they do not all fit. When ctx is done, it returns its error and leaves no partial
// file.
func Run(ctx context.Context, options Options) error {
	folder, err := openFolder(ctx, options)
	if err != nil {
		return err
	}
	defer folder.close()
	return folder.prepare(ctx, options)
}

// Hold removes all other files, creates every file, creates the marker, and waits until ctx is done. Then it removes
// the files.
func Hold(ctx context.Context, options Options, marker string) error {
	if err := os.Remove(marker); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	folder, err := openFolder(ctx, options)
	if err != nil {
		return err
	}
	defer folder.close()
	if err := folder.removeAllBut(options.Sizes); err != nil {
		return err
	}
	err = folder.prepare(ctx, options)
	if err == nil {
		err = os.WriteFile(marker, nil, 0o644)
	}
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, folder.removeAllBut(nil), folder.own.RemoveAll(received))
}

func (f *folder) prepare(ctx context.Context, options Options) error {
	var missing []int64
	for _, size := range options.Sizes {
		there, err := f.find(size)
		if err != nil {
			return err
		}
		if !there {
			missing = append(missing, size)
		}
	}
	if err := options.checkSpace(missing); err != nil {
		return err
	}
	if err := options.checkLimit(f); err != nil {
		return err
	}
	if options.Receive > 0 {
		if err := f.makeReceived(); err != nil {
			return err
		}
	}
	for _, size := range options.Sizes {
		reused := !slices.Contains(missing, size)
		if !reused {
			if err := f.write(ctx, size); err != nil {
				return fmt.Errorf("%s: %w", name(size), err)
			}
		}
		if err := json.NewEncoder(options.Progress).Encode(Prepared{"Prepared", size, reused}); err != nil {
			return err
		}
	}
	return nil
}

// FreeAndTotal returns how many bytes of the disk of a directory are free, and how many it has.
func FreeAndTotal(directory string) (free, total int64, err error) {
	var system unix.Statfs_t
	if err := unix.Statfs(directory, &system); err != nil {
		return 0, 0, err
	}
	block := int64(system.Bsize) // 32 bits wide on some architectures
	return int64(system.Bavail) * block, int64(system.Blocks) * block, nil
}

func (o Options) checkLimit(folder *folder) error {
	files, err := folder.others(o.Sizes)
	if err != nil {
		return err
	}
	needed := o.Receive
	for _, file := range files {
		needed += file.Size()
	}
	for _, size := range o.Sizes {
		needed += size
	}
	if o.Most == 0 || needed <= o.Most {
		return nil
	}
	message := fmt.Sprintf("the files need %s%s, and a node may have %s: take larger sizes out of spec.fileSizes, or ask an administrator to "+
		"raise the chart value limits.nodeFiles", inUnits(needed), o.uploads(), inUnits(o.Most))
	return &contract.Failure{Reason: "InsufficientStorage", Message: message}
}

func (o Options) checkSpace(missing []int64) error {
	needed := o.Receive
	for _, size := range missing {
		needed += size
	}
	if needed == 0 {
		return nil
	}
	look := o.freeAndTotal
	if look == nil {
		look = FreeAndTotal
	}
	free, total, err := look(o.Directory)
	if err != nil {
		return err
	}
	reserve := o.Reserve
	if reserve < 0 {
		reserve = total/100*reservePercent + reserveBytes
	}
	// Files of a wrong size are replaced only when the new file is complete, so their space does not count.
	if needed <= free-reserve {
		return nil
	}
	message := fmt.Sprintf("the files need %s%s, and %s must stay free, but only %s are free: remove larger sizes from spec.fileSizes, "+
		"free space, or choose another spec.storage", inUnits(needed), o.uploads(), inUnits(reserve), inUnits(free))
	return &contract.Failure{Reason: "InsufficientStorage", Message: message}
}

// uploads says how much of the needed space is for uploads.
func (o Options) uploads() string {
	if o.Receive == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s of it for uploads, three times spec.concurrency)", inUnits(o.Receive))
}

func inUnits(number int64) string {
	if number >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(number)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(number)/(1<<20))
}

// write creates a file of random content and the file of its digest. Each appears complete or not at all.
func (f *folder) write(ctx context.Context, size int64) error {
	// The old digest is removed first, because a file exists only if its digest does.
	if err := f.own.Remove(name(size) + digestSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	digest := sha256.New()
	random, err := randomStream()
	if err != nil {
		return err
	}
	err = f.whole(name(size), func(file *os.File) error {
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
	return f.whole(name(size)+digestSuffix, func(file *os.File) error {
		_, err := fmt.Fprintln(file, hex.EncodeToString(digest.Sum(nil)))
		return err
	})
}

// randomStream is AES in counter mode with a random key. It is as fast as the disk, and cannot be compressed.
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
