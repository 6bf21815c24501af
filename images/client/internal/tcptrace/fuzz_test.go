package tcptrace

import "testing"

func FuzzParseEvents(f *testing.F) {
	f.Add("TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 7\nIpExt: InOctets\nIpExt: 9\n")
	f.Add("TcpExt: A\nTcpExt: 9223372036854775808 1\n")
	f.Fuzz(func(_ *testing.T, text string) { parseEvents(text) })
}
