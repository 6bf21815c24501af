package prepare

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tierbench.io/client/internal/contract"
)

func options(t *testing.T, sizes ...int64) (Options, *bytes.Buffer) {
	t.Helper()
	progress := &bytes.Buffer{}
	return Options{
		Directory: t.TempDir(), Sizes: sizes, UID: os.Getuid(), GID: os.Getgid(), Reserve: -1, Progress: progress,
		freeAndTotal: func(string) (int64, int64, error) { return 1 << 40, 1 << 41, nil },
	}, progress
}

func (o Options) folder() string { return filepath.Join(o.Directory, Folder) }

func read(t *testing.T, directory, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(directory, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestFilesAreRandomWithValidDigests(t *testing.T) {
	given, _ := options(t, 1000, 3<<20+7)
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1000.bin", "3145735.bin"} {
		content := read(t, given.folder(), name)
		sum := sha256.Sum256(content)
		if got := strings.TrimSpace(string(read(t, given.folder(), name+".sha256"))); got != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: digest %s", name, got)
		}
		if len(content) > 1000 && bytes.Contains(content[1<<20:], content[:64]) {
			t.Errorf("%s repeats itself", name)
		}
	}
}

func TestOnlyCompleteFilesAreReused(t *testing.T) {
	given, progress := options(t, 2000)
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	first := read(t, given.folder(), "2000.bin")
	progress.Reset()
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, read(t, given.folder(), "2000.bin")) || !strings.Contains(progress.String(), `"reused":true`) {
		t.Error("a whole file was written again")
	}
	for name, spoil := range map[string]func(path string) error{
		"cut short":     func(path string) error { return os.Truncate(path, 1999) },
		"digest absent": func(path string) error { return os.Remove(path + ".sha256") },
	} {
		if err := spoil(filepath.Join(given.folder(), "2000.bin")); err != nil {
			t.Fatal(err)
		}
		if err := Run(t.Context(), given); err != nil {
			t.Fatal(err)
		}
		if again := read(t, given.folder(), "2000.bin"); len(again) != 2000 || bytes.Equal(first, again) {
			t.Errorf("%s: not written again", name)
		}
		first = read(t, given.folder(), "2000.bin")
	}
}

func TestTooSmallDiskIsNotFilled(t *testing.T) {
	given, _ := options(t, 1000, 600<<20)
	given.freeAndTotal = func(string) (int64, int64, error) { return 16200 << 20, 100 << 30, nil }
	var failure *contract.Failure
	if err := Run(t.Context(), given); !errors.As(err, &failure) || failure.Reason != "InsufficientStorage" || !strings.Contains(failure.Message, "15.8 GiB") {
		t.Fatalf("%v", err)
	}
	if entries, _ := os.ReadDir(given.folder()); len(entries) != 0 {
		t.Errorf("%v was written", entries)
	}
}

func TestReserveStaysFree(t *testing.T) {
	for _, test := range []struct {
		name                 string
		free, total, reserve int64
		fits                 bool
	}{
		{"15% and 1 GiB", 5000 + 150_000_000_000 + 1<<30, 1_000_000_000_000, -1, true},
		{"a byte less than 15% and 1 GiB", 4999 + 150_000_000_000 + 1<<30, 1_000_000_000_000, -1, false},
		{"requested reserve", 5000 + 500, 20_000, 500, true},
		{"a byte less than the requested reserve", 5000 + 499, 20_000, 500, false},
		{"no reserve", 5000, 20_000, 0, true},
	} {
		given, _ := options(t, 3000, 2000)
		given.Reserve = test.reserve
		given.freeAndTotal = func(string) (int64, int64, error) { return test.free, test.total, nil }
		if err := Run(t.Context(), given); (err == nil) != test.fits {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestFullDiskServesExistingFiles(t *testing.T) {
	given, _ := options(t, 1000)
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	given.freeAndTotal = func(string) (int64, int64, error) { return 0, 1 << 40, nil }
	if err := Run(t.Context(), given); err != nil {
		t.Error(err)
	}
}

func names(t *testing.T, directory string) string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return strings.Join(found, " ")
}

func TestOnlyOwnPartialFilesAreRemoved(t *testing.T) {
	given, _ := options(t, 1000)
	if err := os.Mkdir(given.folder(), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"1000.bin.part", "7.bin.sha256.part", "film.part", "x1000.bin.part"} {
		if err := os.WriteFile(filepath.Join(given.folder(), left), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if found := names(t, given.folder()); found != "1000.bin 1000.bin.sha256 film.part x1000.bin.part" {
		t.Errorf("there is %s", found)
	}
}

// interrupter ends a run when its first file exists.
type interrupter struct{ cancel context.CancelFunc }

func (i interrupter) Write(line []byte) (int, error) {
	i.cancel()
	return len(line), nil
}

func TestInterruptedRunLeavesNoPartialFiles(t *testing.T) {
	given, _ := options(t, 1000, 64<<20)
	ctx, cancel := context.WithCancel(t.Context())
	given.Progress = interrupter{cancel}
	if err := Run(ctx, given); !errors.Is(err, context.Canceled) {
		t.Fatalf("it ended with %v", err)
	}
	if found := names(t, given.folder()); found != "1000.bin 1000.bin.sha256" {
		t.Errorf("there is %s", found)
	}
}

func TestFilesOnANodeHaveALimit(t *testing.T) {
	given, _ := options(t, 1000)
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	given.Sizes, given.Most = []int64{2000}, 3000+65
	if err := Run(t.Context(), given); err != nil {
		t.Error(err)
	}
	given.Sizes = []int64{500}
	var failure *contract.Failure
	if err := Run(t.Context(), given); !errors.As(err, &failure) || !strings.Contains(failure.Message, "limits.nodeFiles") {
		t.Errorf("%v", err)
	}
}

// held runs Hold until the files exist. end ends it.
func held(t *testing.T, given Options) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	marker, ended := filepath.Join(t.TempDir(), "prepared"), make(chan error, 1)
	go func() { ended <- Hold(ctx, given, marker) }()
	for {
		if _, err := os.Stat(marker); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	return func() error {
		cancel()
		return <-ended
	}
}

func TestHeldFilesAreRemovedWithTheirServer(t *testing.T) {
	given, _ := options(t, 1000)
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(given.folder(), name), []byte("own"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("film")
	if err := os.Symlink("film", filepath.Join(given.folder(), "7.bin")); err != nil {
		t.Fatal(err)
	}
	given.Sizes = []int64{2000, 3000}
	end := held(t, given)
	if found := names(t, given.folder()); found != "2000.bin 2000.bin.sha256 3000.bin 3000.bin.sha256 7.bin film" {
		t.Errorf("while they are held there is %s", found)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if found := names(t, given.folder()); found != "7.bin film" {
		t.Errorf("at the end there is %s", found)
	}
}

func TestFailedHoldLeavesNoFiles(t *testing.T) {
	given, _ := options(t, 1000, 1<<50)
	if err := Hold(t.Context(), given, filepath.Join(t.TempDir(), "prepared")); err == nil {
		t.Error("Hold succeeded")
	}
	if found := names(t, given.folder()); found != "" {
		t.Errorf("there is %s", found)
	}
}

// TestNextServerWaitsForThePreviousOne: the previous server would remove its files.
func TestNextServerWaitsForThePreviousOne(t *testing.T) {
	given, _ := options(t, 1000)
	end := held(t, given)
	next, other := make(chan func() error), given
	other.Progress = io.Discard
	go func() { next <- held(t, other) }()
	var endNext func() error
	select {
	case endNext = <-next:
		t.Error("two servers hold the same files")
	case <-time.After(3 * lockPause):
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if endNext == nil {
		endNext = <-next
	}
	if found := names(t, given.folder()); found != "1000.bin 1000.bin.sha256" {
		t.Errorf("there is %s", found)
	}
	if err := endNext(); err != nil {
		t.Error(err)
	}
}
