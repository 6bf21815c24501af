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

// asRoot returns options that change the owner of files, as only root can, and a check that the directory is unchanged.
func asRoot(t *testing.T, mode os.FileMode) (Options, func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("only root can give files away: run this test as root")
	}
	given, _ := options(t, 1000)
	given.UID, given.GID = 65530, 65531
	if err := os.Chmod(given.Directory, mode); err != nil {
		t.Fatal(err)
	}
	return given, func() { expect(t, given.Directory, mode, 0, 0) }
}

func expect(t *testing.T, path string, mode os.FileMode, uid, gid uint32) {
	t.Helper()
	information, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	is := information.Sys().(*syscall.Stat_t)
	if information.Mode().Perm() != mode || is.Uid != uid || is.Gid != gid {
		t.Errorf("%s: mode %o, owner %d:%d", path, information.Mode().Perm(), is.Uid, is.Gid)
	}
}

func put(t *testing.T, path, content string, uid int) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chown(path, uid, uid)); err != nil {
		t.Fatal(err)
	}
}

func TestRootChangesOwnerOfFilesOnly(t *testing.T) {
	given, directoryIsUnchanged := asRoot(t, 0o700)
	for range 2 {
		if err := Run(t.Context(), given); err != nil {
			t.Fatal(err)
		}
		for _, one := range []string{"1000.bin", "1000.bin.sha256"} {
			expect(t, filepath.Join(given.folder(), one), 0o644, 65530, 65531)
		}
		expect(t, given.folder(), 0o755, 0, 0)
		directoryIsUnchanged()
	}
}

func TestFilesOfOthersOutsideTheFolderAreKept(t *testing.T) {
	given, directoryIsUnchanged := asRoot(t, 0o711)
	outside := func(name string) string { return filepath.Join(given.Directory, name) }
	put(t, outside("secret"), "secret", 0)
	put(t, outside("1000.bin"), strings.Repeat("s", 1000), 0)
	put(t, outside("1000.bin.sha256"), "digest", 65532)
	put(t, outside("7.bin.part"), "half", 65532)
	if err := os.Symlink("secret", outside("passwd")); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	directoryIsUnchanged()
	expect(t, outside("secret"), 0o600, 0, 0)
	expect(t, outside("1000.bin"), 0o600, 0, 0)
	if found := names(t, given.Directory); found != "1000.bin 1000.bin.sha256 7.bin.part _tierbench passwd secret" {
		t.Errorf("there is %s", found)
	}
	if found := names(t, given.folder()); found != "1000.bin 1000.bin.sha256" {
		t.Errorf("there is %s in the folder", found)
	}
	if string(read(t, given.Directory, "1000.bin")) != strings.Repeat("s", 1000) {
		t.Error("a file of another user was written")
	}
}

func TestFilesOfAnotherUserAreRewritten(t *testing.T) {
	for _, test := range []struct {
		name  string
		owner int
	}{{"of a former user", 65532}, {"of another release", 1000660000}, {"root", 0}} {
		t.Run(test.name, func(t *testing.T) {
			given, directoryIsUnchanged := asRoot(t, 0o755)
			if err := os.Mkdir(given.folder(), 0o755); err != nil {
				t.Fatal(err)
			}
			secret := strings.Repeat("s", 1000)
			put(t, filepath.Join(given.folder(), "1000.bin"), secret, test.owner)
			put(t, filepath.Join(given.folder(), "1000.bin.sha256"), "digest", test.owner)
			if err := Run(t.Context(), given); err != nil {
				t.Fatal(err)
			}
			directoryIsUnchanged()
			for _, one := range []string{"1000.bin", "1000.bin.sha256"} {
				expect(t, filepath.Join(given.folder(), one), 0o644, 65530, 65531)
			}
			if string(read(t, given.folder(), "1000.bin")) == secret {
				t.Error("content of another user is served")
			}
		})
	}
}

func TestLinksAndFoldersOfOthersAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(given Options, file, secret string) error{
		"the folder is a link": func(given Options, _, secret string) error {
			return errors.Join(os.RemoveAll(given.folder()), os.Symlink(filepath.Dir(secret), given.folder()))
		},
		"the folder is a link within the directory": func(given Options, _, _ string) error {
			return errors.Join(os.Rename(given.folder(), given.folder()+"2"), os.Symlink(Folder+"2", given.folder()))
		},
		"the folder of another user": func(given Options, _, _ string) error { return os.Chown(given.folder(), 1000, 1000) },
		"the folder is a file": func(given Options, _, _ string) error {
			return errors.Join(os.RemoveAll(given.folder()), os.WriteFile(given.folder(), nil, 0o600))
		},
		"a file is a link": func(_ Options, file, secret string) error {
			return errors.Join(os.Remove(file), os.Symlink(secret, file))
		},
		"a file is a hard link": func(_ Options, file, secret string) error {
			return errors.Join(os.Remove(file), os.Link(secret, file))
		},
		"a digest is a link": func(_ Options, file, secret string) error {
			return errors.Join(os.Remove(file+digestSuffix), os.Symlink(secret, file+digestSuffix))
		},
		"a file is a folder": func(_ Options, file, _ string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			given, directoryIsUnchanged := asRoot(t, 0o755)
			if err := Run(t.Context(), given); err != nil {
				t.Fatal(err)
			}
			elsewhere := t.TempDir()
			if err := os.Chmod(elsewhere, 0o700); err != nil {
				t.Fatal(err)
			}
			secret := filepath.Join(elsewhere, "secret")
			put(t, secret, strings.Repeat("s", 1000), 0)
			if err := spoil(given, filepath.Join(given.folder(), "1000.bin"), secret); err != nil {
				t.Fatal(err)
			}
			before := names(t, given.Directory)
			var failure *contract.Failure
			if err := Run(t.Context(), given); !errors.As(err, &failure) || failure.Reason != "ForeignFile" || !strings.Contains(failure.Message, "delete it on the node") {
				t.Errorf("it ended with %v", err)
			}
			directoryIsUnchanged()
			expect(t, elsewhere, 0o700, 0, 0)
			expect(t, secret, 0o600, 0, 0)
			if found := names(t, elsewhere); found != "secret" {
				t.Errorf("there is %s elsewhere", found)
			}
			if found := names(t, given.Directory); found != before {
				t.Errorf("there is %s, not %s", found, before)
			}
		})
	}
}

func TestSymlinkAtPartialFileIsNotFollowed(t *testing.T) {
	given, _ := asRoot(t, 0o755)
	secret := filepath.Join(t.TempDir(), "secret")
	put(t, secret, "secret", 0)
	if err := errors.Join(os.Mkdir(given.folder(), 0o755), os.Symlink(secret, filepath.Join(given.folder(), "1000.bin.part"))); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	expect(t, secret, 0o600, 0, 0)
	if string(read(t, filepath.Dir(secret), "secret")) != "secret" {
		t.Error("a file elsewhere was written to")
	}
}
