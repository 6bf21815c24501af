package tcpinfo

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

const segmentHeaders = ethernet + ipv4 + tcp + timestamps

func counted(info unix.TCPInfo) Counters {
	info.Options, info.Snd_mss = optionTimestamp, 1448
	return count(&info, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
}

func TestKernelCounterIsUsed(t *testing.T) {
	found := counted(unix.TCPInfo{Bytes_sent: 12_000, Bytes_acked: 10_001, Bytes_received: 500, Segs_out: 20, Segs_in: 10, Total_retrans: 2})
	wanted := Counters{12_000 + 20*segmentHeaders + synWithStamps, 500 + 10*segmentHeaders + synWithStamps, 20, 10, 2}
	if found != wanted {
		t.Errorf("%+v, not %+v", found, wanted)
	}
}

func TestSentBytesAreEstimatedWithoutKernelCounter(t *testing.T) {
	for name, test := range map[string]struct {
		info    unix.TCPInfo
		payload int64
	}{
		"all acknowledged":   {unix.TCPInfo{Bytes_acked: 10_001, Segs_out: 20, Data_segs_out: 7}, 10_000},
		"in flight":          {unix.TCPInfo{Bytes_acked: 10_001, Segs_out: 20, Data_segs_out: 9, Unacked: 2}, 10_000 + 2*1448},
		"sent again":         {unix.TCPInfo{Bytes_acked: 10_001, Segs_out: 20, Data_segs_out: 9, Total_retrans: 1}, 10_000 + 1448},
		"more than was sent": {unix.TCPInfo{Bytes_acked: 2001, Segs_out: 20, Data_segs_out: 2, Unacked: 3}, 2 * 1448},
		"nothing":            {unix.TCPInfo{Bytes_acked: 1, Segs_out: 20}, 0},
	} {
		if found := counted(test.info).SentBytes - 20*segmentHeaders - synWithStamps; found != test.payload {
			t.Errorf("%s: %d, not %d", name, found, test.payload)
		}
	}
}

func TestFINIsNotPayload(t *testing.T) {
	for state, payload := range map[uint8]int64{unix.BPF_TCP_ESTABLISHED: 501, unix.BPF_TCP_CLOSE_WAIT: 500, unix.BPF_TCP_CLOSE: 500} {
		found := counted(unix.TCPInfo{State: state, Bytes_received: 501})
		if found.ReceivedBytes != payload+synWithStamps {
			t.Errorf("state %d: %d", state, found.ReceivedBytes)
		}
	}
}
