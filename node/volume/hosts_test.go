package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podkeeper/podkeeper/node/volume"
)

// A container that has the hosts file mounted sees a change of it.
func TestHosts(t *testing.T) {
	h := &volume.Host{RootDir: t.TempDir()}
	path, err := h.Hosts("u", []byte("127.0.0.1 localhost and more\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(h.RootDir, "pods/u/etc-hosts"); path != want {
		t.Errorf("it is %s, want %s", path, want)
	}
	mounted, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer mounted.Close()
	const want = "127.0.0.1 localhost\n"
	for range 2 {
		if _, err := h.Hosts("u", []byte(want)); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 100)
	n, _ := mounted.ReadAt(buf, 0)
	if got := string(buf[:n]); got != want {
		t.Errorf("what was mounted before has %q, want %q", got, want)
	}
	if info, err := mounted.Stat(); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}
