//go:build !linux

package tcpinfo

import "net"

// Acknowledged returns 0: only Linux reports it.
func Acknowledged(*net.TCPConn) int64 { return 0 }
