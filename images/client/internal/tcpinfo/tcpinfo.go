//go:build linux

// Package tcpinfo counts the bytes and packets of a TCP connection on an Ethernet, from the kernel's TCP_INFO.
package tcpinfo

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	ethernet        = 14
	ipv4, ipv6      = 20, 40
	tcp             = 20
	timestamps      = 12 // of each segment, with padding, where both sides agreed on them
	synWithStamps   = 8  // the options that only a SYN has
	synWithout      = 12
	optionTimestamp = 1 // TCPI_OPT_TIMESTAMPS
)

// Counters count what a connection has carried so far. Bytes are those of whole frames: Ethernet, IP and TCP headers of each
// segment, payload, and retransmissions. Packets are segments, including those that connect, only acknowledge, or are
// retransmitted.
type Counters struct {
	SentBytes, ReceivedBytes, SentPackets, ReceivedPackets, Retransmits int64
}

// Bytes returns the bytes of both directions.
func (c Counters) Bytes() int64 { return c.SentBytes + c.ReceivedBytes }

// Packets returns the packets of both directions.
func (c Counters) Packets() int64 { return c.SentPackets + c.ReceivedPackets }

// Add sums the counters of several connections.
func (c *Counters) Add(other Counters) {
	c.SentBytes += other.SentBytes
	c.ReceivedBytes += other.ReceivedBytes
	c.SentPackets += other.SentPackets
	c.ReceivedPackets += other.ReceivedPackets
	c.Retransmits += other.Retransmits
}

// Since returns the difference to earlier counters.
func (c Counters) Since(earlier Counters) Counters {
	return Counters{
		c.SentBytes - earlier.SentBytes, c.ReceivedBytes - earlier.ReceivedBytes,
		c.SentPackets - earlier.SentPackets, c.ReceivedPackets - earlier.ReceivedPackets, c.Retransmits - earlier.Retransmits,
	}
}

// Read returns the counters of the kernel.
func Read(conn *net.TCPConn) (Counters, error) {
	info, err := info(conn)
	if err != nil {
		return Counters{}, err
	}
	return count(info, conn.RemoteAddr()), nil
}

// Parse returns the counters in a struct tcp_info that another program has read. A kernel may know fewer or more fields.
func Parse(structure []byte, remote net.Addr) Counters {
	info := &unix.TCPInfo{}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(info)), unsafe.Sizeof(*info)), structure)
	return count(info, remote)
}

// Acknowledged returns the bytes that the other side has acknowledged, or 0 if they are not known.
func Acknowledged(conn *net.TCPConn) int64 {
	info, err := info(conn)
	if err != nil {
		return 0
	}
	return int64(info.Bytes_acked)
}

// Established reports whether neither side has closed the connection, as far as the kernel knows.
func Established(conn *net.TCPConn) bool {
	info, err := info(conn)
	return err == nil && info.State == unix.BPF_TCP_ESTABLISHED
}

func count(info *unix.TCPInfo, remote net.Addr) Counters {
	segment, syn := headers(remote, info.Options&optionTimestamp != 0)
	return Counters{
		SentBytes:       sent(info) + int64(info.Segs_out)*segment + syn,
		ReceivedBytes:   received(info) + int64(info.Segs_in)*segment + syn,
		SentPackets:     int64(info.Segs_out),
		ReceivedPackets: int64(info.Segs_in),
		Retransmits:     int64(info.Total_retrans),
	}
}

// sent returns the payload that was sent, including retransmissions. Kernels before 4.19 do not count it. Then it is the
// acknowledged payload without the SYN, plus the other segments as if they were full.
func sent(info *unix.TCPInfo) int64 {
	if info.Bytes_sent > 0 || info.Bytes_acked == 0 {
		return int64(info.Bytes_sent)
	}
	whole := int64(info.Snd_mss)
	acknowledged := int64(info.Bytes_acked) - 1
	return min(acknowledged+int64(info.Unacked+info.Total_retrans)*whole, max(acknowledged, int64(info.Data_segs_out)*whole))
}

// received returns the payload that was received. The kernel counts a FIN as a byte of it.
func received(info *unix.TCPInfo) int64 {
	switch info.State {
	case unix.BPF_TCP_CLOSE_WAIT, unix.BPF_TCP_LAST_ACK, unix.BPF_TCP_CLOSING, unix.BPF_TCP_TIME_WAIT, unix.BPF_TCP_CLOSE:
		return max(int64(info.Bytes_received)-1, 0)
	}
	return int64(info.Bytes_received)
}

func info(conn *net.TCPConn) (*unix.TCPInfo, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var info *unix.TCPInfo
	var failed error
	err = raw.Control(func(descriptor uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(descriptor), unix.SOL_TCP, unix.TCP_INFO)
	})
	if err != nil {
		return nil, err
	}
	return info, failed
}

// headers returns the size of the headers of a segment, and the additional bytes of a SYN.
func headers(remote net.Addr, stamped bool) (segment, syn int64) {
	segment, syn = ethernet+ipv4+tcp, synWithout
	if address, is := remote.(*net.TCPAddr); is && address.IP.To4() == nil {
		segment = ethernet + ipv6 + tcp
	}
	if stamped {
		return segment + timestamps, synWithStamps
	}
	return segment, syn
}
