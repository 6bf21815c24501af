package link

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// End is an end of a link. It reads and writes one packet at a time, and never waits.
type End interface {
	Close() error
	descriptor() int
	largest() int // bytes of a packet
	read(buffer []byte) (int, error)
	write(packet []byte) (bool, error)
}

// Device is a network interface of this program. It reads or writes one packet with each system call.
type Device struct{ fd int }

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

func (d *Device) descriptor() int { return d.fd }

func (d *Device) largest() int { return packetBytes }

// read returns the size of the next packet, or 0 if there is none.
func (d *Device) read(buffer []byte) (int, error) {
	size, err := unix.Read(d.fd, buffer)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return size, err
}

func (d *Device) write(packet []byte) (bool, error) { return sent(unix.Write(d.fd, packet)) }

// sent reports whether a packet was accepted. An interface that is down accepts none, like a cable without a machine.
func sent(_ int, err error) (bool, error) {
	for _, full := range []error{unix.EIO, unix.EAGAIN, unix.ENOBUFS, unix.ENETDOWN} {
		if errors.Is(err, full) {
			return false, nil
		}
	}
	return err == nil, err
}
