package agent

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tierbench.io/client/internal/contract"
)

const (
	token    = "secret"
	fileSize = 24 << 20
)

// onDisk is a directory on a real disk: a tmpfs has no page cache apart from itself.
func onDisk(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("/var/tmp", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	var system unix.Statfs_t
	if err := unix.Statfs(directory, &system); err != nil {
		t.Fatal(err)
	}
	if system.Type == unix.TMPFS_MAGIC {
		t.Fatal("/var/tmp is a tmpfs: this test needs a disk")
	}
	return directory
}

func start(t *testing.T, directory string) string {
	t.Helper()
	agent, err := New(Options{Directory: directory, Token: token, Ports: map[uint16]bool{}, Interval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(agent.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

func call(t *testing.T, url, bearer, body string, answer any) int {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, answer); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	return response.StatusCode
}

func writeFile(t *testing.T, directory string) {
	t.Helper()
	file, err := os.Create(filepath.Join(directory, "file.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := io.CopyN(file, rand.Reader, fileSize); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
}

func TestColdIsColdAndWarmIsWarm(t *testing.T) {
	directory := onDisk(t)
	writeFile(t, directory)
	url := start(t, directory)
	for _, state := range []string{"Cold", "Warm", "Cold"} {
		var begun map[string]int64
		if status := call(t, url+"/v1/begin", token, fmt.Sprintf(`{"file":"file.bin","cacheState":%q}`, state), &begun); status != http.StatusOK {
			t.Fatalf("%s: status %d", state, status)
		}
		resident := begun["residentPartsPerMillion"]
		if state == "Cold" && resident > 10_000 || state == "Warm" && resident < 990_000 {
			t.Errorf("%s: %d parts per million are in the page cache", state, resident)
		}
	}
	// The last state was Cold: reading the file now must show at the device.
	if _, err := os.ReadFile(filepath.Join(directory, "file.bin")); err != nil {
		t.Fatal(err)
	}
	var sample contract.ServerSample
	if status := call(t, url+"/v1/end", token, "", &sample); status != http.StatusOK {
		t.Fatalf("end: status %d", status)
	}
	if *sample.ResidentBeforePartsPerMillion > 10_000 || *sample.ResidentAfterPartsPerMillion < 990_000 {
		t.Errorf("before %d, after %d", *sample.ResidentBeforePartsPerMillion, *sample.ResidentAfterPartsPerMillion)
	}
	if sample.DeviceReadBytes == nil || *sample.DeviceReadBytes < fileSize {
		t.Errorf("the device read %v of %d bytes", sample.DeviceReadBytes, fileSize)
	}
	if sample.CPUPartsPerMillion == nil || *sample.CPUPartsPerMillion < 0 || *sample.CPUPartsPerMillion > 1_000_000 {
		t.Errorf("CPU %v", sample.CPUPartsPerMillion)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	directory := onDisk(t)
	if err := os.Symlink("/etc", filepath.Join(directory, "way-out")); err != nil {
		t.Fatal(err)
	}
	url := start(t, directory)
	cases := []struct {
		path, bearer, body string
		status             int
		reason             string
	}{
		{"/v1/begin", "wrong", `{}`, http.StatusUnauthorized, "TokenRefused"},
		{"/v1/begin", "", `{}`, http.StatusUnauthorized, "TokenRefused"},
		{"/v1/begin", token, `{`, http.StatusBadRequest, "BadRequest"},
		{"/v1/begin", token, `{"file":"../../etc/passwd"}`, http.StatusBadRequest, "BadRequest"},
		{"/v1/begin", token, `{"file":"absent.bin"}`, http.StatusNotFound, "FileNotFound"},
		{"/v1/begin", token, `{"file":"way-out/passwd"}`, http.StatusUnprocessableEntity, "CacheStateFailed"},
		{"/v1/begin", token, `{"file":"file.bin","cacheState":"Hot"}`, http.StatusBadRequest, "BadRequest"},
		{"/v1/end", token, ``, http.StatusConflict, "NoTrial"},
	}
	for _, one := range cases {
		var failure contract.Failure
		if status := call(t, url+one.path, one.bearer, one.body, &failure); status != one.status || failure.Reason != one.reason {
			t.Errorf("%+v: %d %+v", one, status, failure)
		}
	}
}

func TestABeginWithoutAnEndStartsAgain(t *testing.T) {
	url := start(t, onDisk(t))
	for range 3 {
		var begun map[string]*int64
		if status := call(t, url+"/v1/begin", token, `{}`, &begun); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	var sample contract.ServerSample
	if status := call(t, url+"/v1/end", token, "", &sample); status != http.StatusOK || sample.ResidentBeforePartsPerMillion != nil {
		t.Errorf("status %d, %+v", status, sample)
	}
}

func TestParsers(t *testing.T) {
	ticks, err := parseStat("cpu  100 0 50 800 40 0 10 0 7 0\ncpu0 1 2 3\n")
	if err != nil || ticks != (cpuTicks{total: 1000, idle: 800, ioWait: 40}) {
		t.Errorf("%+v %v", ticks, err)
	}
	if _, err := parseStat("intr 5\n"); err == nil {
		t.Error("no error for a file without a cpu line")
	}
	disks := " 254       0 vda 10 0 2000 5 20 0 4000 9\n 254       1 vda1 1 0 8 1 0 0 0 0\n"
	if read, found := parseDiskRead(disks, 254, 0); !found || read != 2000*512 {
		t.Errorf("%d %v", read, found)
	}
	if _, found := parseDiskRead(disks, 0, 44); found {
		t.Error("an anonymous device was found")
	}
	if waited, found := parsePressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\nfull total=9\n"); !found || waited != 12345 {
		t.Errorf("%d %v", waited, found)
	}
	if _, found := parsePressure(""); found {
		t.Error("pressure found in nothing")
	}
	snmp := "Ip: A\nIp: 1\nTcp: RtoMin OutSegs RetransSegs\nTcp: 200 5000 7\n"
	if counters, found := parseSNMP(snmp); !found || counters != (tcpCounters{sent: 5000, retransmitted: 7}) {
		t.Errorf("%+v %v", counters, found)
	}
}
