package agent

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore sets one flag per page of memory. Bit 0 is set if the page is resident.
func mincore(memory, flags []byte) error {
	address, result := unsafe.Pointer(&memory[0]), unsafe.Pointer(&flags[0])
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(address), uintptr(len(memory)), uintptr(result))
	if errno != 0 {
		return errno
	}
	return nil
}
