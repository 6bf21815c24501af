package network

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

const answered = `PING 10.0.0.5 (10.0.0.5) 56(84) bytes of data.
64 bytes from 10.0.0.5: icmp_seq=1 ttl=64 time=0.315 ms
64 bytes from 10.0.0.5: icmp_seq=2 ttl=64 time=12.5 ms
64 bytes from 10.0.0.5: icmp_seq=2 ttl=64 time=12.9 ms (DUP!)
From 10.0.0.9 icmp_seq=3 Destination Host Unreachable
64 bytes from 10.0.0.5: icmp_seq=4 ttl=64 time=103 ms

--- 10.0.0.5 ping statistics ---
4 packets transmitted, 3 received, +1 duplicates, +1 errors, 25% packet loss, time 603ms
rtt min/avg/max/mdev = 0.315/38.605/103.000/45.817 ms, pipe 2
`

const lost = `PING 10.0.0.5 (10.0.0.5) 56(84) bytes of data.

--- 10.0.0.5 ping statistics ---
5 packets transmitted, 0 received, 100% packet loss, time 818ms
`

func TestEveryEchoReplyCountsOnce(t *testing.T) {
	found := readPing(answered)
	echoes, histogram := found.echoes, found.histogram
	if echoes.Sent != 4 || echoes.Received != 3 || echoes.Duplicated != 1 {
		t.Errorf("%+v", echoes)
	}
	if !is(echoes.MinNanoseconds, 315_000) || !is(echoes.MeanNanoseconds, 38_605_000) || !is(echoes.MaxNanoseconds, 103_000_000) || !is(echoes.StandardDeviationNanoseconds, 45_817_000) {
		t.Errorf("%+v", echoes)
	}
	if found.sending != 603*time.Millisecond {
		t.Errorf("requests were sent for %v", found.sending)
	}
	if histogram.Count != 3 || histogram.SumNanoseconds != 315_000+12_500_000+103_000_000 {
		t.Errorf("%+v", histogram)
	}
}

func TestMissingEchoRepliesAreAResult(t *testing.T) {
	found := readPing(lost)
	echoes, histogram := found.echoes, found.histogram
	if echoes == nil || echoes.Sent != 5 || echoes.Received != 0 || echoes.MeanNanoseconds != nil || histogram != nil {
		t.Errorf("%+v, %+v", echoes, histogram)
	}
}

func TestMessagesOfPingMapToReasonsWithHints(t *testing.T) {
	for message, reason := range map[string]string{
		"ping: socktype: SOCK_RAW\nping: socket: Operation not permitted": "PingNotPermitted",
		"ping: connect: Network is unreachable":                           "PingFailed",
	} {
		if failure := pingFailure(message); failure.Reason != reason {
			t.Errorf("%s: %v", message, failure)
		}
	}
}

// The fake ping loses its first two requests, and records all of them.
func TestAwaitEchoPingsUntilAReplyArrives(t *testing.T) {
	folder := t.TempDir()
	script := `#!/bin/sh
echo . >>` + folder + `/asked
[ "$(wc -l <` + folder + `/asked)" -gt 2 ] && received=1 || received=0
echo "1 packets transmitted, $received received, time 0ms"
`
	if err := os.WriteFile(filepath.Join(folder, "ping"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	for range 2 { // the second time it answers at once
		if err := awaitEcho(t.Context(), &Ping{Count: 1, Host: "10.0.0.5"}); err != nil {
			t.Fatal(err)
		}
	}
	if asked, _ := os.ReadFile(filepath.Join(folder, "asked")); string(asked) != ".\n.\n.\n.\n" {
		t.Errorf("%q", asked)
	}
}
