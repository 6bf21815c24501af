package link

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Device is an end of the link: a file descriptor that gives and takes one packet with each system call, and never waits.
type Device struct {
	fd     int
	header int // bytes of an Ethernet frame that its packets lack
}

// OpenTAP creates a network interface whose Ethernet frames go to this program. It ends with the program.
func OpenTAP(name string) (*Device, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w: load the kernel's module tun, or give the container this device", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("interface %q: %w", name, err), unix.Close(fd))
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, errors.Join(fmt.Errorf("interface %s: %w", name, os.NewSyscallError("TUNSETIFF", err)), unix.Close(fd))
	}
	return &Device{fd: fd}, nil
}

// Close removes the interface.
func (d *Device) Close() error { return unix.Close(d.fd) }

// read returns the size of the next packet, or 0 if there is none.
func (d *Device) read(buffer []byte) (int, error) {
	size, err := unix.Read(d.fd, buffer)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return size, err
}

// write sends a packet, and says whether it was taken. An interface that is down takes none, as a cable without a machine.
func (d *Device) write(packet []byte) (bool, error) {
	_, err := unix.Write(d.fd, packet)
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS) {
		return false, nil
	}
	return err == nil, err
}
