package network

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

// captured returns a report of iperf3 3.12 on loopback. Where both directions were equal, some figures were changed.
func captured(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func is(pointer *int64, value int64) bool { return pointer != nil && *pointer == value }

func TestThroughputIsMeasuredAtTheReceiver(t *testing.T) {
	seen, err := readIperf3(captured(t, "tcp-upload.json"), nil, &Options{Direction: Upload, Protocol: TCP})
	upload, download := seen.upload, seen.download
	if err != nil || download != nil {
		t.Fatalf("%+v, %v", download, err)
	}
	if seen.took != 1000149*time.Microsecond || upload.BitsPerSecond != 201286133 || upload.ReceivedBytes != 25165824 || !is(upload.Retransmits, 0) || upload.Packets != nil {
		t.Errorf("%+v", upload)
	}
}

func TestSenderAndReceiverRatesAreReported(t *testing.T) {
	seen, err := readIperf3(captured(t, "tcp-upload.json"), nil, &Options{Direction: Upload, Protocol: TCP})
	if err != nil || seen.upload.SentBitsPerSecond != 201296599 || seen.upload.SentBytes != 25165824 {
		t.Errorf("%+v, %v", seen.upload, err)
	}
}

func TestCongestionControlIsReadFromSockets(t *testing.T) {
	for _, one := range []struct{ direction, sender, receiver, client, server string }{
		{Upload, "bbr", "cubic", "bbr", "cubic"},
		{Download, "bbr", "cubic", "cubic", "bbr"},
		{Bidirectional, "reno", "reno", "reno", "reno"},
		{Bidirectional, "bbr", "cubic", "", ""},
		{Upload, "", "", "", ""},
	} {
		if client, server := congestion(one.sender, one.receiver, one.direction); client != one.client || server != one.server {
			t.Errorf("%+v: %q and %q", one, client, server)
		}
	}
	seen, err := readIperf3(captured(t, "tcp-upload.json"), nil, &Options{Direction: Upload, Protocol: TCP})
	if err != nil || seen.clientCongestion != "bbr" || seen.serverCongestion != "bbr" {
		t.Errorf("%+v, %v", seen, err)
	}
}

// TestRefusedCongestionControlIsReported has what iperf3 3.12 prints if its own kernel refuses, or that of its server,
// which leaves before the load.
func TestRefusedCongestionControlIsReported(t *testing.T) {
	const refused, left = "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host", "control socket has closed unexpectedly"
	for _, one := range []struct{ asked, start, message, reason string }{
		{"cubic", "", refused, "CongestionControlNotAllowed"},
		{"cubic", "", left, "CongestionControlNotAllowed"},
		{"cubic", `"test_start":{"protocol":"TCP"}`, left, "ConnectionLost"},
		{"", "", left, "ConnectionLost"},
	} {
		written := []byte(`{"start":{` + one.start + `},"end":{},"error":"` + one.message + `"}`)
		_, err := readIperf3(written, nil, &Options{Direction: Upload, Protocol: TCP, Congestion: one.asked})
		if failure, is := err.(*contract.Failure); !is || failure.Reason != one.reason {
			t.Errorf("%+v: %v", one, err)
		}
	}
}

func TestDownloadIsNotCountedAsUpload(t *testing.T) {
	seen, err := readIperf3(captured(t, "tcp-download.json"), nil, &Options{Direction: Download, Protocol: TCP})
	upload, download := seen.upload, seen.download
	if err != nil || upload != nil || download.BitsPerSecond != 100653633 {
		t.Errorf("%+v, %+v, %v", upload, download, err)
	}
	if download.Retransmits != nil {
		t.Errorf("%d retransmits, although the sender does not report them", *download.Retransmits)
	}
}

func TestDirectionsAreReportedSeparately(t *testing.T) {
	seen, err := readIperf3(captured(t, "tcp-both.json"), nil, &Options{Direction: Bidirectional, Protocol: TCP})
	upload, download := seen.upload, seen.download
	if err != nil || upload.BitsPerSecond != 100600019 || download.BitsPerSecond != 50000000 || !is(upload.Retransmits, 3) || !is(download.Retransmits, 9) {
		t.Errorf("%+v, %+v, %v", upload, download, err)
	}
	seen, err = readIperf3(captured(t, "udp-both.json"), nil, &Options{Direction: Bidirectional, Protocol: UDP})
	upload, download = seen.upload, seen.download
	if err != nil || upload.Retransmits != nil {
		t.Fatalf("%+v, %v", upload, err)
	}
	if !is(upload.LostPackets, 5) || !is(upload.Packets, 78) || !is(upload.OutOfOrderPackets, 3) || !is(upload.JitterNanoseconds, 1_250_000) {
		t.Errorf("%+v", upload)
	}
	if !is(download.LostPackets, 7) || !is(download.Packets, 80) || !is(download.OutOfOrderPackets, 4) || !is(download.JitterNanoseconds, 2_500_000) {
		t.Errorf("%+v", download)
	}
}

func TestMessagesOfIperf3MapToReasons(t *testing.T) {
	for message, reason := range map[string]string{
		"the server is busy running a test. try again later":                  "ServerBusy",
		"unable to connect to server: Connection refused":                     "ConnectionRefused",
		"unable to connect to server: Network is unreachable":                 "ServerUnreachable",
		"control socket has closed unexpectedly":                              "ConnectionLost",
		"unable to send control message: Broken pipe":                         "ConnectionLost",
		"unable to receive results: Connection reset by peer":                 "ConnectionLost",
		"unable to read from stream socket: Resource temporarily unavailable": "UDPBlocked",
		"interrupt - the client has terminated":                               "Iperf3Failed",
	} {
		_, err := readIperf3([]byte(`{"end":{},"error":"`+message+`"}`), nil, &Options{Direction: Upload, Protocol: UDP})
		failure, is := err.(*contract.Failure)
		if !is || failure.Reason != reason {
			t.Errorf("%s: %v", message, err)
		}
	}
	for _, written := range []string{"", `{"end":{}}`} {
		_, err := readIperf3([]byte(written), []byte("no such option"), &Options{Direction: Upload, Protocol: TCP})
		if failure, is := err.(*contract.Failure); !is || failure.Reason != "Iperf3Failed" {
			t.Errorf("%q: %v", written, err)
		}
	}
}

func TestUDPRateIsTheSumOfStreams(t *testing.T) {
	arguments := iperf3Arguments(&Options{Protocol: UDP, Streams: 4, BitsPerSecond: 10_000_000})
	if at := slices.Index(arguments, "--bitrate"); at < 0 || arguments[at+1] != "2500000" {
		t.Errorf("%v", arguments)
	}
}

func TestIperf3HasAThreadPerStreamSince316(t *testing.T) {
	for version, wanted := range map[string]int{"iperf 3.12": 1, "iperf 3.15": 1, "iperf 3.16": 4, "iperf 3.18+": 4, "iperf 4.0": 4, "": 0} {
		if found := threads(version, 4); found != wanted {
			t.Errorf("%s: %d threads", version, found)
		}
	}
	if seen, err := readIperf3(captured(t, "tcp-both.json"), nil, &Options{Direction: Bidirectional, Protocol: TCP}); err != nil || seen.threads != 1 {
		t.Errorf("%d threads, %v", seen.threads, err)
	}
	if withThreads(16_000, 1) != 1000 || withThreads(500, 4) != 500 || withThreads(0, 4) != 0 {
		t.Error("the CPU limit is wrong")
	}
}

// TestReportDoesNotGrowWithTheLoad: a small device has no memory for an entry of each stream and second.
func TestReportDoesNotGrowWithTheLoad(t *testing.T) {
	arguments := iperf3Arguments(&Options{Host: "h", Port: 1, Protocol: TCP, Direction: Bidirectional, Streams: 128, Duration: time.Hour})
	if place := slices.Index(arguments, "--interval"); place < 0 || arguments[place+1] != "0" {
		t.Errorf("%q", arguments)
	}
}
