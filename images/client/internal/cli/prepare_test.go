package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tierbench.io/client/internal/contract"
	"tierbench.io/client/internal/prepare"
)

func TestFailedPreparationWritesReason(t *testing.T) {
	for _, test := range []struct {
		name, sizes, owner, directory, reason, says string
	}{
		{"more than any disk holds", "1000000000000000000", "1:1", ".", "InsufficientStorage", "free space"},
		{"invalid sizes", "5,large", "1:1", ".", "PreparationFailed", "1048576,536870912"},
		{"invalid owner", "5", "root", ".", "PreparationFailed", "65530:65530"},
		{"no owner for files of root", "5", "", ".", "UserNotNamed", "workloads.runAsUser"},
		{"no directory", "5", "1:1", "absent", "PreparationFailed", "absent: no such file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			directory, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
			arguments := []string{"prepare", "--directory", filepath.Join(directory, test.directory), "--sizes", test.sizes,
				"--owner", test.owner, "--termination-log", log}
			if code := Main(arguments); code != exitFailure {
				t.Errorf("exit code %d", code)
			}
			content, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			var failure contract.Failure
			if err := json.Unmarshal(content, &failure); err != nil {
				t.Fatal(err)
			}
			if failure.Reason != test.reason || !strings.Contains(failure.Message, test.says) {
				t.Errorf("%s", content)
			}
			if files, _ := filepath.Glob(filepath.Join(directory, prepare.Folder, "*")); len(files) != 0 {
				t.Errorf("%v was written", files)
			}
		})
	}
}

func TestSuccessfulPreparationWritesNoReason(t *testing.T) {
	directory, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	arguments := []string{"prepare", "--directory", directory, "--sizes", "5", "--owner", "1:1", "--reserve-bytes", "0", "--termination-log", log}
	if code := Main(arguments); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(log); err == nil {
		t.Error("there is a termination message")
	}
}
