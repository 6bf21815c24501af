package payload

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tierbench.io/client/internal/contract"
)

// mounted returns a folder like a volume of a ConfigMap: its files are links into a folder that the kubelet replaces as
// a whole.
func mounted(t *testing.T, messages map[string]string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "sensor-messages")
	data := filepath.Join(folder, "..2026_01_01")
	if err := errors.Join(os.MkdirAll(data, 0o700), os.Symlink("..2026_01_01", filepath.Join(folder, "..data"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range messages {
		err := errors.Join(os.WriteFile(filepath.Join(data, name), []byte(text), 0o600), os.Symlink("..data/"+name, filepath.Join(folder, name)))
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestMessagesOfAFolderAreOrderedByName(t *testing.T) {
	pool, err := FromFolder(mounted(t, map[string]string{"b": "second, the largest", "a.json": "first one", "c": "third one!", "B": "capital first"}))
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range []string{"capital first", "first one", "second, the largest", "third one!", "capital first"} {
		if found := string(pool.Content(uint64(number))); found != want {
			t.Errorf("message %d is %q, not %q", number, found, want)
		}
	}
	if found := string(pool.Content(pool.Largest())); found != "second, the largest" {
		t.Errorf("the largest is %q", found)
	}
}

func TestFoldersWithoutMessagesAreRefused(t *testing.T) {
	for says, folder := range map[string]string{
		"absent has no messages":          filepath.Join(t.TempDir(), "absent"),
		"sensor-messages has no messages": mounted(t, nil),
		"short of sensor-messages has 8":  mounted(t, map[string]string{"a": "long enough", "short": "8 bytes."}),
	} {
		_, err := FromFolder(folder)
		var failure *contract.Failure
		if !errors.As(err, &failure) || failure.Reason != "MessagesUnusable" || !strings.Contains(failure.Message, says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
