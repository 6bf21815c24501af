package outside

import (
	"fmt"
	"syscall"
)

// lock holds a file until this process ends.
func lock(path string) error {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	_, err = syscall.CreateFile(name, syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return fmt.Errorf("another process uses %s (%w): end it, or name another folder with --state", path, err)
	}
	return nil
}
