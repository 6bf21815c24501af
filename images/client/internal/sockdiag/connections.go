// Package sockdiag returns what the kernel knows about the TCP connections of this network namespace: sock_diag(7).
package sockdiag

import (
	"encoding/binary"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The library detects the byte order at its first use, without a lock, so two watches would race.
var _ = nl.NativeEndian()

const (
	infoAttribute = 2 // INET_DIAG_INFO
	headBytes     = 72
	keyBytes      = 48
	requestBytes  = 8 + keyBytes
	allStates     = 0xfff
	established   = 1
	timeWait      = 6
	listening     = 10
)

// Connection is a connection as the kernel reports it.
type Connection struct {
	Local, Remote uint16 // ports
	Established   bool
	Info          unix.TCPInfo
	family        uint8
	key           [keyBytes]byte // ports, addresses, interface, and the cookie that no other connection ever has
}

// Cookie returns the unique number that the kernel gives to a connection.
func (c *Connection) Cookie() [8]byte { return [8]byte(c.key[keyBytes-8:]) }

// all returns the connections that carry data or still may. The kernel searches the table of the whole machine for this, which
// takes half a millisecond or more. It returns none if the kernel has no sock_diag.
func all() []Connection {
	var found []Connection
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		found = append(found, ask(family, [keyBytes]byte{}, unix.NLM_F_DUMP)...)
	}
	return found
}

// again returns the current state of the same connection, or nothing if it has ended.
func (c *Connection) again() []Connection { return ask(c.family, c.key, 0) }

func ask(family uint8, key [keyBytes]byte, flags int) []Connection {
	request := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, flags)
	body := make([]byte, 0, requestBytes)
	body = append(body, family, unix.IPPROTO_TCP, 1<<(infoAttribute-1), 0)
	body = binary.NativeEndian.AppendUint32(body, allStates&^(1<<listening|1<<timeWait))
	request.AddRawData(append(body, key[:]...))
	var found []Connection
	// Results before an error are valid. There is no way to get the rest.
	_ = request.ExecuteIter(unix.NETLINK_INET_DIAG, nl.SOCK_DIAG_BY_FAMILY, func(message []byte) bool {
		if one, known := parse(message); known {
			found = append(found, one)
		}
		return true
	})
	return found
}

// parse parses an inet_diag_msg and its tcp_info, which is shorter in older kernels. It returns false if there is no tcp_info.
func parse(message []byte) (Connection, bool) {
	if len(message) < headBytes {
		return Connection{}, false
	}
	attributes, err := nl.ParseRouteAttr(message[headBytes:])
	if err != nil {
		return Connection{}, false
	}
	one := Connection{family: message[0], Established: message[1] == established, key: [keyBytes]byte(message[4:])}
	one.Local, one.Remote = binary.BigEndian.Uint16(one.key[:]), binary.BigEndian.Uint16(one.key[2:])
	for _, attribute := range attributes {
		if attribute.Attr.Type == infoAttribute {
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&one.Info)), unsafe.Sizeof(one.Info)), attribute.Value)
			return one, true
		}
	}
	return Connection{}, false
}
