package link

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

const usual = 1514

// received returns a frame as the kernel delivers it: with a header that says what remains to be done.
func received(flags, kind byte, each, start, offset int, frame []byte) []byte {
	header := []byte{flags, kind}
	for _, value := range []int{0, each, start, offset} {
		header = binary.NativeEndian.AppendUint16(header, uint16(value))
	}
	return append(header, frame...)
}

func ethernet(kind uint16) []byte { return binary.BigEndian.AppendUint16(make([]byte, 12), kind) }

func ipv4(protocol byte, length int) []byte {
	ip := []byte{0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
	binary.BigEndian.PutUint16(ip[2:], uint16(20+length))
	return ip
}

func ipv6(protocol byte, length int) []byte {
	ip := make([]byte, 40)
	ip[0], ip[6], ip[7], ip[23], ip[39] = 0x60, protocol, 64, 1, 2
	binary.BigEndian.PutUint16(ip[4:], uint16(length))
	return ip
}

// tcp returns a header with the flags CWR, PSH, ACK and FIN, and 12 bytes of options.
func tcp() []byte {
	header := make([]byte, 32)
	binary.BigEndian.PutUint32(header[4:], 0xfffffff0)
	header[12], header[13] = 8<<4, 0x99
	return header
}

func content(length int) []byte {
	made, random := make([]byte, length), rand.New(rand.NewPCG(1, 1))
	for index := range made {
		made[index] = byte(random.Uint32())
	}
	return made
}

func all(t *testing.T, given []byte) (packets [][]byte) {
	t.Helper()
	var c cutter
	c.load(given, usual)
	for {
		buffer := make([]byte, usual)
		size := c.next(buffer)
		if size == 0 {
			return packets
		}
		packets = append(packets, buffer[:size])
	}
}

// isRight says whether the checksum of a transport header is right.
func isRight(ip, segment []byte) bool {
	addresses, protocol := ip[12:20], ip[9]
	if ip[0]>>4 == 6 {
		addresses, protocol = ip[8:40], ip[6]
	}
	return fold(sum(addresses)+uint64(protocol)+uint64(len(segment))+sum(segment)) == 0xffff
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestLongSegmentIsCutIntoPackets(t *testing.T) {
	payload := content(3001)
	for name, one := range map[string]struct {
		kind    byte
		link    uint16
		ip      []byte
		network int
	}{
		"IPv4": {cutTCPv4, 0x0800, ipv4(unix.IPPROTO_TCP, 32+len(payload)), 20},
		"IPv6": {cutTCPv6 | cutECN, 0x86dd, ipv6(unix.IPPROTO_TCP, 32+len(payload)), 40},
	} {
		t.Run(name, func(t *testing.T) {
			start := 14 + one.network
			packets := all(t, received(needsChecksum, one.kind, 1400, start, checksumOfTCP, join(ethernet(one.link), one.ip, tcp(), payload)))
			if len(packets) != 3 {
				t.Fatalf("%d packets", len(packets))
			}
			var whole []byte
			for number, packet := range packets {
				ip, segment := packet[14:], packet[start:]
				length := binary.BigEndian.Uint16(ip[4:]) + 40
				if name == "IPv4" {
					length = binary.BigEndian.Uint16(ip[2:])
					if id := binary.BigEndian.Uint16(ip[4:]); id != uint16(7+number) || fold(sum(ip[:20])) != 0xffff {
						t.Errorf("packet %d has the number %d, and the sum %x", number, id, fold(sum(ip[:20])))
					}
				}
				sequence := binary.BigEndian.Uint32(segment[4:])
				if int(length) != len(ip) || sequence != uint32(0xfffffff0+int64(len(whole))) || !isRight(ip, segment) {
					t.Errorf("packet %d: length %d of %d, sequence %x, checksum right: %v", number, length, len(ip), sequence, isRight(ip, segment))
				}
				if flags := segment[13]; flags != [3]byte{0x90, 0x10, 0x19}[number] {
					t.Errorf("packet %d has the flags %x", number, flags)
				}
				whole = append(whole, segment[32:]...)
			}
			if !bytes.Equal(whole, payload) {
				t.Error("the payload has changed")
			}
		})
	}
}

func TestLongDatagramIsCutIntoDatagrams(t *testing.T) {
	payload := content(2500)
	datagram := []byte{0, 1, 0, 2, 0, 0, 0, 0}
	packets := all(t, received(needsChecksum, cutUDP, 1200, 34, checksumOfUDP, join(ethernet(0x0800), ipv4(unix.IPPROTO_UDP, 2508), datagram, payload)))
	if len(packets) != 3 {
		t.Fatalf("%d packets", len(packets))
	}
	var whole []byte
	for number, packet := range packets {
		if int(binary.BigEndian.Uint16(packet[38:])) != len(packet)-34 || !isRight(packet[14:], packet[34:]) {
			t.Errorf("packet %d: % x", number, packet[:42])
		}
		whole = append(whole, packet[42:]...)
	}
	if !bytes.Equal(whole, payload) {
		t.Error("the payload has changed")
	}
}

func TestMissingChecksumIsAdded(t *testing.T) {
	segment := join(tcp(), content(101))
	ip := ipv4(unix.IPPROTO_TCP, len(segment))
	binary.BigEndian.PutUint16(segment[checksumOfTCP:], fold(sum(ip[12:20])+unix.IPPROTO_TCP+uint64(len(segment))))
	packets := all(t, received(needsChecksum, 0, 0, 34, checksumOfTCP, join(ethernet(0x0800), ip, segment)))
	if len(packets) != 1 || !isRight(packets[0][14:], packets[0][34:]) {
		t.Errorf("%d packets", len(packets))
	}
}

func TestOtherPacketsPassUnchanged(t *testing.T) {
	frame := join(ethernet(0x0806), content(46))
	if packets := all(t, received(0, 0, 0, 0, 0, frame)); len(packets) != 1 || !bytes.Equal(packets[0], frame) {
		t.Errorf("%d packets", len(packets))
	}
}

func FuzzCutterLimitsPackets(f *testing.F) {
	f.Add(received(needsChecksum, cutTCPv4, 1400, 34, checksumOfTCP, join(ethernet(0x0800), ipv4(6, 3033), tcp(), content(3001))))
	f.Add(received(needsChecksum, cutUDP, 9, 58, checksumOfUDP, join(ethernet(0x8100), content(4), ipv6(17, 99), content(200))))
	f.Fuzz(func(t *testing.T, given []byte) {
		for _, packet := range all(t, given) {
			if len(packet) == 0 || len(packet) > usual {
				t.Errorf("%d bytes", len(packet))
			}
		}
	})
}
