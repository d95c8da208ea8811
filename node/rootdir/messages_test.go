package rootdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// C120: of a message the end is read, and everybody in the container may write it.
func TestMessages(t *testing.T) {
	root := t.TempDir()
	d := open(t, root)
	defer d.Close()
	if got, err := d.ReadMessage("u", "app", 0, 10); len(got) > 0 || err != nil {
		t.Errorf("before there is a file: %q, %v", got, err)
	}
	path, err := d.MakeMessage("u", "app", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := mode(t, path).Perm(); got != 0o666 {
		t.Errorf("mode %o, want 666", got)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 5000)+"END"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := d.MakeMessage("u", "app", 0); err != nil { // once more, and nothing is lost
		t.Fatal(err)
	}
	for most, want := range map[int]string{5: "xxEND", 5003: strings.Repeat("x", 5000) + "END", 9000: strings.Repeat("x", 5000) + "END"} {
		if got, err := d.ReadMessage("u", "app", 0, most); string(got) != want || err != nil {
			t.Errorf("the last %d: %d bytes, %v", most, len(got), err)
		}
	}
	for attempt := 1; attempt <= 2; attempt++ {
		if _, err := d.MakeMessage("u", "app", attempt); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(filepath.Join(root, "pods/u/containers/app"))
	if err != nil || len(left) != 2 {
		t.Errorf("%v are left (%v), want two attempts", left, err)
	}
	if _, err := d.MakeMessage("u", "../../../..", 0); err == nil {
		t.Error("a name leads out")
	}
}
