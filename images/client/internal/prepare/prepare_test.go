package prepare

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tierbench.io/client/internal/contract"
)

func options(t *testing.T, sizes ...int64) (Options, *bytes.Buffer) {
	t.Helper()
	progress := &bytes.Buffer{}
	return Options{
		Directory: t.TempDir(), Sizes: sizes, UID: os.Getuid(), GID: os.Getgid(), Reserve: -1, Progress: progress,
		freeAndTotal: func(string) (int64, int64, error) { return 1 << 40, 1 << 41, nil },
		chown:        os.Chown,
	}, progress
}

func read(t *testing.T, directory, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(directory, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestFilesAreRandomAndTheirDigestsRight(t *testing.T) {
	given, _ := options(t, 1000, 3<<20+7)
	if err := Run(given); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1000.bin", "3145735.bin"} {
		content := read(t, given.Directory, name)
		sum := sha256.Sum256(content)
		if got := strings.TrimSpace(string(read(t, given.Directory, name+".sha256"))); got != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: digest %s", name, got)
		}
		if len(content) > 1000 && bytes.Contains(content[1<<20:], content[:64]) {
			t.Errorf("%s repeats itself", name)
		}
	}
}

func TestFilesAreReusedOnlyWhenWhole(t *testing.T) {
	given, progress := options(t, 2000)
	if err := Run(given); err != nil {
		t.Fatal(err)
	}
	first := read(t, given.Directory, "2000.bin")
	progress.Reset()
	if err := Run(given); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, read(t, given.Directory, "2000.bin")) || !strings.Contains(progress.String(), `"reused":true`) {
		t.Error("a whole file was written again")
	}
	for name, spoil := range map[string]func(path string) error{
		"cut short":     func(path string) error { return os.Truncate(path, 1999) },
		"digest absent": func(path string) error { return os.Remove(path + ".sha256") },
	} {
		if err := spoil(filepath.Join(given.Directory, "2000.bin")); err != nil {
			t.Fatal(err)
		}
		if err := Run(given); err != nil {
			t.Fatal(err)
		}
		if again := read(t, given.Directory, "2000.bin"); len(again) != 2000 || bytes.Equal(first, again) {
			t.Errorf("%s: not written again", name)
		}
		first = read(t, given.Directory, "2000.bin")
	}
}

func TestADiskThatIsTooSmallIsLeftAlone(t *testing.T) {
	given, _ := options(t, 1000, 600<<20)
	given.freeAndTotal = func(string) (int64, int64, error) { return 800 << 20, 100 << 30, nil }
	var failure *contract.Failure
	if err := Run(given); !errors.As(err, &failure) || failure.Reason != "InsufficientStorage" || !strings.Contains(failure.Message, "800.0 MiB") {
		t.Fatalf("%v", err)
	}
	if entries, _ := os.ReadDir(given.Directory); len(entries) != 0 {
		t.Errorf("%v was written", entries)
	}
}

func TestTheReserveStaysFree(t *testing.T) {
	for free, fits := range map[int64]bool{1000 + 500: true, 1000 + 499: false} {
		given, _ := options(t, 1000)
		given.Reserve = 500
		given.freeAndTotal = func(string) (int64, int64, error) { return free, 1 << 40, nil }
		if err := Run(given); (err == nil) != fits {
			t.Errorf("%d bytes free: %v", free, err)
		}
	}
}

func TestLeftoversOfACrashGo(t *testing.T) {
	given, _ := options(t, 1000)
	left := filepath.Join(given.Directory, "5000.bin.part")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Run(given); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("the leftover is still there")
	}
}
