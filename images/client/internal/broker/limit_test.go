package broker

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestAQuotaOfCPUIsALimit(t *testing.T) {
	all := int64(runtime.GOMAXPROCS(0)) * 1000
	for content, wanted := range map[string]int64{
		"50000 100000\n":    500,
		"max 100000\n":      all,
		"90000000 100000\n": all,
		"":                  all,
	} {
		file := filepath.Join(t.TempDir(), "cpu.max")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if limit := cpuLimit(file); limit != wanted {
			t.Errorf("%q: %d", content, limit)
		}
	}
	if limit := cpuLimit("/absent"); limit != all {
		t.Errorf("%d without a quota", limit)
	}
}
