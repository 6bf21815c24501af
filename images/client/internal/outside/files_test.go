package outside

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlanIsLocalizedForThisMachine(t *testing.T) {
	plan := `{"sizeBytes": 12345678901234567, "targets": [{"url": "http://10.0.0.5:30080/1.bin", "caFile": "",
	  "agent": {"url": "https://10.0.0.5:30081", "tokenFile": "/credentials/1/agent-token", "pinFile": "/credentials/1/agent-pin"}}]}`
	files := map[string][]byte{"/credentials/1/agent-token": []byte("a"), "/credentials/1/agent-pin": {0xff}}
	addresses, err := ParseAddresses([]string{"10.0.0.5:30081=[2001:db8::1]:443", "gateway.example"})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "files")
	local, err := localize(plan, files, folder, addresses)
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		SizeBytes int64
		Targets   []struct {
			URL, CAFile string
			Agent       struct{ URL, TokenFile, PinFile string }
		}
	}
	if err := json.Unmarshal([]byte(local), &found); err != nil {
		t.Fatal(err)
	}
	target := found.Targets[0]
	content, err := os.ReadFile(target.Agent.TokenFile)
	if err != nil || string(content) != "a" || !strings.HasPrefix(target.Agent.PinFile, folder) {
		t.Errorf("%q, %v, %+v", content, err, target)
	}
	if found.SizeBytes != 12345678901234567 || target.URL != "http://gateway.example:30080/1.bin" || target.CAFile != "" {
		t.Errorf("%+v", found)
	}
	if target.Agent.URL != "https://[2001:db8::1]:443" {
		t.Errorf("%+v", target.Agent)
	}
}

// TestPlanReadsNoFileOfThisMachine: a plan with /etc/shadow as a token would send it away.
func TestPlanReadsNoFileOfThisMachine(t *testing.T) {
	plan := `{"keyFile": "/etc/hostname"}`
	local, err := localize(plan, nil, filepath.Join(t.TempDir(), "files"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ KeyFile string }
	if err := json.Unmarshal([]byte(local), &found); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(found.KeyFile); !os.IsNotExist(err) {
		t.Errorf("%s: %v", found.KeyFile, err)
	}
}

func TestInvalidAddressesAreRefused(t *testing.T) {
	for _, one := range []string{"", "a=", "http://a", "a b"} {
		if _, err := ParseAddresses([]string{one}); err == nil {
			t.Errorf("%q was accepted", one)
		}
	}
}
