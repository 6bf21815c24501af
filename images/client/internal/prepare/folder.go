package prepare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/wait"
)

// Folder is the name of the folder for the files within a directory. No spec can name a folder of this name.
const Folder = "_tierbench"

const (
	received        = "received" // the folder of uploads, below Folder
	partial         = "partial"  // below received, of uploads that have not ended
	temporarySuffix = ".part"
	digestSuffix    = ".sha256"
	lockPause       = 100 * time.Millisecond
)

// folder is the folder of the files. The program may run as root where others can write, so it uses a Root, which follows no link
// out of it.
type folder struct {
	directory, own *os.Root
	locked         *os.File
	uid, gid       int // of the files, if this program is root and can change them
	root           bool
}

// openFolder creates the folder if it does not exist, waits until no other program uses it, and removes what an interrupted run
// has left in it.
func openFolder(ctx context.Context, options Options) (*folder, error) {
	directory, err := os.OpenRoot(options.Directory)
	if err != nil {
		return nil, err
	}
	opened := &folder{directory: directory, uid: options.UID, gid: options.GID, root: os.Geteuid() == 0}
	if err := opened.open(ctx); err != nil {
		opened.close()
		return nil, err
	}
	return opened, nil
}

func (f *folder) open(ctx context.Context) error {
	if err := f.directory.Mkdir(Folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("user %d must be able to write to the folder of spec.storage: %w", os.Geteuid(), err)
	}
	information, err := f.directory.Lstat(Folder)
	if err != nil {
		return err
	}
	if !information.IsDir() || f.root && owner(information) != 0 {
		return foreign(Folder, information)
	}
	if f.own, err = f.directory.OpenRoot(Folder); err != nil {
		return err
	}
	if err := f.lock(ctx); err != nil {
		return err
	}
	return errors.Join(f.removeTemporary(), f.emptyReceived())
}

func (f *folder) close() {
	f.directory.Close()
	if f.own != nil {
		f.own.Close()
	}
	if f.locked != nil {
		f.locked.Close()
	}
}

// lock waits for the program of a previous server, which removes its files at its end.
func (f *folder) lock(ctx context.Context) (err error) {
	if f.locked, err = f.own.Open("."); err != nil {
		return err
	}
	for {
		err := unix.Flock(int(f.locked.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if err := wait.For(ctx, lockPause); err != nil {
			return err
		}
	}
}

var ownFile = regexp.MustCompile(`^([0-9]+)\.bin(\` + digestSuffix + `)?$`)

// others are the files of other sizes, and their digests.
func (f *folder) others(sizes []int64) ([]fs.FileInfo, error) {
	entries, err := fs.ReadDir(f.own.FS(), ".")
	if err != nil {
		return nil, err
	}
	var found []fs.FileInfo
	for _, entry := range entries {
		parts := ownFile.FindStringSubmatch(entry.Name())
		if parts == nil || slices.ContainsFunc(sizes, func(size int64) bool { return strconv.FormatInt(size, 10) == parts[1] }) {
			continue
		}
		information, err := f.own.Lstat(entry.Name())
		if err != nil {
			return nil, err
		}
		if plain(information) {
			found = append(found, information)
		}
	}
	return found, nil
}

// removeAllBut removes the files of all other sizes.
func (f *folder) removeAllBut(sizes []int64) error {
	found, err := f.others(sizes)
	for _, file := range found {
		err = errors.Join(err, f.own.Remove(file.Name()))
	}
	return err
}

var temporary = regexp.MustCompile(`^[0-9]+\.bin(\` + digestSuffix + `)?\` + temporarySuffix + `$`)

func (f *folder) removeTemporary() error {
	entries, err := fs.ReadDir(f.own.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if temporary.MatchString(entry.Name()) {
			if err := f.own.Remove(entry.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeReceived creates the folders of uploads, and lets the server's group write to them. They keep the owner of the others, who
// removes them.
func (f *folder) makeReceived() error {
	for _, folder := range []string{received, received + "/" + partial} {
		if err := f.own.Mkdir(folder, 0o770); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := f.own.Chmod(folder, 0o770); err != nil {
			return err
		}
		if f.root {
			if err := f.own.Lchown(folder, -1, f.gid); err != nil {
				return err
			}
		}
	}
	return nil
}

// emptyReceived removes the uploads of a previous server. It leaves the folders, because a server may have mounted
// them.
func (f *folder) emptyReceived() error {
	for _, folder := range []string{received + "/" + partial, received} {
		entries, err := fs.ReadDir(f.own.FS(), folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.Name() == partial {
				continue
			}
			if err := f.own.RemoveAll(folder + "/" + entry.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

func name(size int64) string { return strconv.FormatInt(size, 10) + ".bin" }

// find reports whether a file is complete.
func (f *folder) find(size int64) (bool, error) {
	content, err := f.bytes(name(size))
	if err != nil {
		return false, err
	}
	digest, err := f.bytes(name(size) + digestSuffix)
	return content == size && digest > 0, err
}

// bytes returns the size of a file, or 0 if it does not exist. It refuses a file that differs from those that this program
// creates, because links lead elsewhere. It removes a file of another user, such as an earlier workloads.runAsUser, instead of
// changing its owner.
func (f *folder) bytes(name string) (int64, error) {
	information, err := f.own.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if !plain(information) {
		return 0, foreign(Folder+"/"+name, information)
	}
	if f.root && owner(information) != f.uid {
		return 0, f.own.Remove(name)
	}
	return information.Size(), nil
}

func plain(information fs.FileInfo) bool {
	return information.Mode().IsRegular() && links(information) == 1
}

func owner(information fs.FileInfo) int { return int(information.Sys().(*syscall.Stat_t).Uid) }

func links(information fs.FileInfo) int { return int(information.Sys().(*syscall.Stat_t).Nlink) }

func foreign(name string, information fs.FileInfo) error {
	message := fmt.Sprintf("tierbench did not create %s in the folder of spec.storage (%v, owner %d, links %d): delete it on "+
		"the node, or choose another path", name, information.Mode(), owner(information), links(information))
	return &contract.Failure{Reason: "ForeignFile", Message: message}
}

// whole writes a file under a temporary name, syncs it to the disk, and then renames it.
func (f *folder) whole(name string, fill func(*os.File) error) error {
	file, err := f.own.OpenFile(name+temporarySuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err = fill(file); err == nil {
		err = errors.Join(f.give(file), file.Sync())
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = f.own.Rename(name+temporarySuffix, name)
	}
	if err != nil {
		return errors.Join(err, f.own.Remove(name+temporarySuffix))
	}
	return f.sync()
}

// give makes a file readable for all users, and changes its owner to the user that asks for its resident pages. It uses
// the open file, because the name may belong to another file by now.
func (f *folder) give(file *os.File) error {
	if err := file.Chmod(0o644); err != nil || !f.root {
		return err
	}
	return file.Chown(f.uid, f.gid)
}

func (f *folder) sync() error {
	directory, err := f.own.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
