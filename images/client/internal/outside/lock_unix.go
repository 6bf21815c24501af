//go:build unix

package outside

import (
	"fmt"
	"os"
	"syscall"
)

// lock holds a file until this process ends.
func lock(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another process uses %s (%w): end it, or name another folder with --state", path, err)
	}
	held = append(held, file)
	return nil
}

var held []*os.File // a file that is collected as garbage is unlocked
