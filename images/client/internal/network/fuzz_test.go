package network

import (
	"os"
	"path/filepath"
	"testing"

	"tierbench.io/client/internal/contract"
)

// FuzzReadIperf3 reads reports whose server part comes from an untrusted server.
func FuzzReadIperf3(f *testing.F) {
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) == 0 {
		f.Fatalf("no reports: %v", err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, direction := range []string{Upload, Download, Bidirectional} {
			f.Add(content, direction, TCP)
			f.Add(content, direction, UDP)
		}
	}
	f.Fuzz(func(t *testing.T, written []byte, direction, protocol string) {
		seen, err := readIperf3(written, nil, &Options{Direction: direction, Protocol: protocol})
		if err != nil {
			return
		}
		if seen.took < 0 {
			t.Errorf("it took %v", seen.took)
		}
		for _, flow := range []*contract.Flow{seen.upload, seen.download} {
			if flow != nil && (flow.BitsPerSecond < 0 || flow.ReceivedBytes < 0 || flow.SentBytes < 0) {
				t.Errorf("%+v", flow)
			}
		}
	})
}

func FuzzReadPing(f *testing.F) {
	f.Add("64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.05 ms\n1 packets transmitted, 1 received, time 99999999999999999999ms\nrtt min/avg/max/mdev = 0.05/0.05/0.05/0.0 ms\n")
	f.Add("64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=99999999999999999999999 ms (DUP!)\n99999999999999999999999 packets transmitted, 1 received\n")
	f.Fuzz(func(t *testing.T, text string) {
		found := readPing(text)
		echoes, histogram := found.echoes, found.histogram
		if echoes != nil && (echoes.Sent < 0 || echoes.Received < 0) {
			t.Errorf("%+v", echoes)
		}
		if histogram != nil && histogram.SumNanoseconds < 0 {
			t.Errorf("%+v", histogram)
		}
		if found.sending < 0 {
			t.Errorf("%v", found.sending)
		}
	})
}
