package agent

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore fills flags, one a page of memory: bit 0 says that it is resident.
func mincore(memory, flags []byte) error {
	address, result := unsafe.Pointer(&memory[0]), unsafe.Pointer(&flags[0])
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(address), uintptr(len(memory)), uintptr(result))
	if errno != 0 {
		return errno
	}
	return nil
}
