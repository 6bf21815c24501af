package prepare

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tierbench.io/client/internal/contract"
)

func TestUploadFolderIsEmptiedAndRemovedWithTheServer(t *testing.T) {
	given, _ := options(t, 1000)
	given.Receive = 5000
	if os.Getuid() == 0 {
		given.UID, given.GID = 4711, 4711
	}
	place := filepath.Join(given.folder(), "received")
	upload := func() {
		for _, name := range []string{"0", "partial/0000000001"} {
			if err := os.WriteFile(filepath.Join(place, name), []byte("sent"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	upload()
	end := held(t, given)
	if found := names(t, place); found != "partial" {
		t.Errorf("a server starts with %s", found)
	}
	for _, folder := range []string{place, filepath.Join(place, "partial")} {
		information, err := os.Stat(folder)
		if err != nil {
			t.Fatal(err)
		}
		system := information.Sys().(*syscall.Stat_t)
		if information.Mode().Perm() != 0o770 || int(system.Gid) != given.GID || int(system.Uid) != os.Getuid() {
			t.Errorf("%s: %v of %d:%d", folder, information.Mode(), system.Uid, system.Gid)
		}
	}
	upload()
	if err := end(); err != nil {
		t.Error(err)
	}
	if found := names(t, given.folder()); found != "" {
		t.Errorf("at the end there is %s", found)
	}
}

func TestPreparationNeedsSpaceForUploads(t *testing.T) {
	for name, limit := range map[string]func(*Options){
		"free": func(given *Options) {
			given.freeAndTotal = func(string) (int64, int64, error) { return 5999, 1 << 40, nil }
		},
		"limit": func(given *Options) { given.Most = 5999 },
	} {
		t.Run(name, func(t *testing.T) {
			given, _ := options(t, 1000)
			given.Receive, given.Reserve = 5000, 0
			limit(&given)
			var failure *contract.Failure
			if err := Run(t.Context(), given); !errors.As(err, &failure) || failure.Reason != "InsufficientStorage" ||
				!strings.Contains(failure.Message, "of it for uploads") {
				t.Errorf("%v", err)
			}
			if found := names(t, given.folder()); found != "" {
				t.Errorf("there is %s", found)
			}
			given.Receive--
			if err := Run(t.Context(), given); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestServerThatOnlyReceivesHasNoOtherFiles(t *testing.T) {
	given, _ := options(t)
	given.Receive = 5000
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if found := names(t, given.folder()); found != "received" {
		t.Errorf("there is %s", found)
	}
}
