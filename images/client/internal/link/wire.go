package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const (
	mostReceived = headerBytes + 64<<10 + 256 // of a packet that the kernel has not cut yet
	frameBytes   = 18                         // of an Ethernet header, perhaps of a VLAN
	bufferBytes  = 8 << 20                    // of packets that arrived while the pump had no processor
)

// Wire is a network interface whose packets go to this program, as the kernel sees them: before they are cut to the size of the
// network, and without the checksums that a network card computes. It cuts them, and computes the checksums.
type Wire struct {
	in, out  int // sockets; the one that receives has a header before each packet
	size     int // bytes of the largest frame
	received []byte
	cutter   cutter
}

// OpenWire receives the packets that arrive at an interface. The kernel sees them as well, so its own part must ignore
// them.
func OpenWire(name string) (wire *Wire, err error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	wire = &Wire{in: -1, out: -1, size: device.MTU + frameBytes, received: make([]byte, mostReceived)}
	defer func() {
		if err != nil {
			err = errors.Join(err, wire.Close())
		}
	}()
	if wire.in, err = packetSocket(); err != nil {
		return nil, err
	}
	if wire.out, err = packetSocket(); err != nil {
		return nil, err
	}
	for _, option := range []struct{ level, name, value int }{
		{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1},
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
		{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bufferBytes},
	} {
		if err := unix.SetsockoptInt(wire.in, option.level, option.name, option.value); err != nil {
			return nil, fmt.Errorf("interface %s: %w", name, os.NewSyscallError("setsockopt", err))
		}
	}
	everything := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	for socket, protocol := range map[int]uint16{wire.in: everything, wire.out: 0} {
		if err := unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: device.Index}); err != nil {
			return nil, fmt.Errorf("interface %s: %w", name, os.NewSyscallError("bind", err))
		}
	}
	return wire, nil
}

// packetSocket returns a socket that receives nothing until it is bound to a protocol.
func packetSocket() (int, error) {
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("packet socket: %w: give the container the capability NET_RAW", err)
	}
	return socket, nil
}

// Close ends the reception.
func (w *Wire) Close() (err error) {
	for _, socket := range []int{w.in, w.out} {
		if socket >= 0 {
			err = errors.Join(err, unix.Close(socket))
		}
	}
	return err
}

func (w *Wire) descriptor() int { return w.in }

func (w *Wire) largest() int { return w.size }

// read returns the size of the next packet, or 0 if there is none.
func (w *Wire) read(buffer []byte) (int, error) {
	for {
		if size := w.cutter.next(buffer); size > 0 {
			return size, nil
		}
		size, err := unix.Read(w.in, w.received)
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENETDOWN):
			return 0, nil
		case err != nil:
			return 0, err
		}
		w.cutter.load(w.received[:size], len(buffer))
	}
}

func (w *Wire) write(packet []byte) (bool, error) { return sent(unix.Write(w.out, packet)) }
