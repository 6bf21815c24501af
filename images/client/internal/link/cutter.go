package link

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const (
	headerBytes = 10 // of struct virtio_net_hdr, which the kernel puts before a packet

	needsChecksum = 1 // among its flags

	cutTCPv4 = 1
	cutTCPv6 = 4
	cutUDP   = 5
	cutECN   = 0x80 // in addition to one of the others

	checksumOfTCP = 16 // its place in the header
	checksumOfUDP = 6
	headerOfUDP   = 8
	leastOfTCP    = 20 // bytes of a header

	fin, push, reduced = 0x01, 0x08, 0x80 // flags of TCP
)

// cutter turns what the kernel would leave to a network card into packets of the network: a long segment of TCP becomes several, and
// all have their checksums.
type cutter struct {
	whole     []byte // Ethernet frame
	network   int    // where its IP header begins
	transport int    // where the header of TCP or UDP begins
	payload   int    // where its payload begins
	each      int    // bytes of payload in each packet
	done      int    // bytes of payload that are in earlier packets
	number    int    // of earlier packets
}

// load takes a packet with its header. A packet that cannot be of a network of this size is dropped.
func (c *cutter) load(received []byte, most int) {
	*c = cutter{}
	if len(received) <= headerBytes {
		return
	}
	flags, kind := received[0], received[1]
	each, start, offset := word(received[4:]), word(received[6:]), word(received[8:])
	frame := received[headerBytes:]
	switch kind &^ cutECN {
	case 0:
		if flags&needsChecksum != 0 && start+offset+2 <= len(frame) {
			addChecksum(frame[start:], offset)
		}
		if len(frame) <= most {
			*c = cutter{whole: frame, each: len(frame)}
		}
	case cutTCPv4, cutTCPv6:
		if start+leastOfTCP <= len(frame) {
			c.cut(frame, start, start+max(int(frame[start+12]>>4)*4, leastOfTCP), each, most)
		}
	case cutUDP:
		c.cut(frame, start, start+headerOfUDP, each, most)
	}
}

func (c *cutter) cut(frame []byte, transport, payload, each, most int) {
	network := networkHeader(frame)
	if each > 0 && network < transport && transport < payload && payload < len(frame) && payload+each <= most && hasHeader(frame[network:transport]) {
		*c = cutter{whole: frame, network: network, transport: transport, payload: payload, each: each}
	}
}

// hasHeader reports whether these bytes can be an IP header, perhaps with options.
func hasHeader(ip []byte) bool {
	if ip[0]>>4 == 4 {
		length := int(ip[0]&15) * 4
		return length >= 20 && length <= len(ip)
	}
	return len(ip) >= 40
}

// next copies the next packet, and returns its size, or 0 after the last one.
func (c *cutter) next(buffer []byte) int {
	left := len(c.whole) - c.payload - c.done
	if left <= 0 {
		return 0
	}
	length := min(left, c.each)
	copy(buffer, c.whole[:c.payload])
	copy(buffer[c.payload:], c.whole[c.payload+c.done:][:length])
	packet := buffer[:c.payload+length]
	if c.transport > 0 {
		c.complete(packet, left == length)
	}
	c.done += length
	c.number++
	return len(packet)
}

// complete writes lengths, numbers and checksums of one of several packets.
func (c *cutter) complete(packet []byte, last bool) {
	ip, segment := packet[c.network:], packet[c.transport:]
	var addresses []byte
	if ip[0]>>4 == 4 {
		addresses = ip[12:20]
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(c.number))
		binary.BigEndian.PutUint16(ip[10:], 0)
		addChecksum(ip[:int(ip[0]&15)*4], 10)
	} else {
		addresses = ip[8:40]
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
	}
	protocol, place := uint64(unix.IPPROTO_TCP), checksumOfTCP
	if c.payload-c.transport == headerOfUDP {
		protocol, place = unix.IPPROTO_UDP, checksumOfUDP
		binary.BigEndian.PutUint16(segment[4:], uint16(len(segment)))
	} else {
		binary.BigEndian.PutUint32(segment[4:], binary.BigEndian.Uint32(segment[4:])+uint32(c.done))
		if !last {
			segment[13] &^= fin | push
		}
		if c.number > 0 {
			segment[13] &^= reduced
		}
	}
	binary.BigEndian.PutUint16(segment[place:], fold(sum(addresses)+protocol+uint64(len(segment))))
	addChecksum(segment, place)
}

// networkHeader returns where the IP header of an Ethernet frame begins, or a place after its end if it has none.
func networkHeader(frame []byte) int {
	for place := 12; place+2 < len(frame); place += 4 {
		switch binary.BigEndian.Uint16(frame[place:]) {
		case 0x0800, 0x86dd:
			return place + 2
		case 0x8100, 0x88a8: // VLAN
		default:
			return len(frame)
		}
	}
	return len(frame)
}

// addChecksum writes the checksum of some bytes into them. Its place holds the sum of what else it covers.
func addChecksum(covered []byte, place int) {
	checksum := ^fold(sum(covered))
	if checksum == 0 {
		checksum = 0xffff // as UDP requires, and the same number in this arithmetic
	}
	binary.BigEndian.PutUint16(covered[place:], checksum)
}

// sum adds up 16-bit words (RFC 1071).
func sum(of []byte) (total uint64) {
	for ; len(of) >= 8; of = of[8:] {
		value := binary.BigEndian.Uint64(of)
		total += value>>32 + value&0xffffffff
	}
	for ; len(of) >= 2; of = of[2:] {
		total += uint64(binary.BigEndian.Uint16(of))
	}
	if len(of) == 1 {
		total += uint64(of[0]) << 8
	}
	return total
}

func fold(total uint64) uint16 {
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	return uint16(total)
}

func word(bytes []byte) int { return int(binary.NativeEndian.Uint16(bytes)) }
