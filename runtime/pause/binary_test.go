package pause_test

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

func TestBinariesAreSmallStaticPrograms(t *testing.T) {
	for arch, machine := range machines {
		t.Run(arch, func(t *testing.T) {
			data := read(t, "pause-"+arch)
			if len(data) >= 8<<10 {
				t.Errorf("the program has %d bytes, want less than 8 KiB", len(data))
			}
			f, err := elf.NewFile(bytes.NewReader(data))
			if err != nil {
				t.Fatalf("read ELF header: %v", err)
			}
			if f.Machine != machine || f.Type != elf.ET_EXEC || f.Class != elf.ELFCLASS64 {
				t.Errorf("the program is %v %v %v, want %v %v %v", f.Class, f.Type, f.Machine, elf.ELFCLASS64, elf.ET_EXEC, machine)
			}
			for _, p := range f.Progs {
				switch p.Type {
				case elf.PT_INTERP, elf.PT_DYNAMIC:
					t.Errorf("the program has a %v segment: it is not static", p.Type)
				case elf.PT_LOAD, elf.PT_GNU_STACK:
					if p.Flags&elf.PF_W != 0 && p.Flags&elf.PF_X != 0 {
						t.Errorf("segment %v is writable and executable", p.Type)
					}
				}
				// arm64 kernels have pages of up to 64 KiB.
				if arch == "arm64" && p.Type == elf.PT_LOAD && p.Align < 64<<10 {
					t.Errorf("the program is aligned to %d bytes, which a kernel with pages of 64 KiB cannot load", p.Align)
				}
			}
		})
	}
}

// The checksums cover the sources, so an edit of pause.c without `make pause`
// is found on machines without a compiler as well.
func TestChecksums(t *testing.T) {
	var got strings.Builder
	for _, name := range []string{"src/pause.c", "src/build.sh", "pause-amd64", "pause-arm64"} {
		fmt.Fprintf(&got, "%x  %s\n", sha256.Sum256(read(t, name)), name)
	}
	want := string(read(t, "checksums.txt"))
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("files differ from checksums.txt, run `make pause` (-recorded +found):\n%s", diff)
	}
}

// Each architecture is compared where its compiler and linker are the recorded
// ones; elsewhere the bytes may rightly differ, and the checksums have to do.
func TestRebuildGivesTheSameBytes(t *testing.T) {
	recorded := map[string]string{}
	for line := range strings.Lines(string(read(t, "src/toolchain.txt"))) {
		if arch, versions, ok := strings.Cut(strings.TrimSpace(line), " "); ok && arch != "#" {
			recorded[arch] = versions
		}
	}
	for arch, prefix := range map[string]string{"amd64": "x86_64-linux-gnu-", "arm64": "aarch64-linux-gnu-"} {
		if recorded[arch] == "" {
			t.Errorf("toolchain.txt has no line for %s", arch)
		}
		if toolVersion(prefix+"gcc")+" "+toolVersion(prefix+"ld") != recorded[arch] {
			continue
		}
		t.Run(arch, func(t *testing.T) {
			out := t.TempDir()
			if text, err := exec.Command("src/build.sh", "-o", out, arch).CombinedOutput(); err != nil {
				t.Fatalf("build.sh: %v\n%s", err, text)
			}
			if !bytes.Equal(read(t, filepath.Join(out, "pause-"+arch)), read(t, "pause-"+arch)) {
				t.Errorf("a rebuild of pause-%s has other bytes than the one checked in: run `make pause`", arch)
			}
		})
	}
}

// toolVersion is the version of one of Debian's compilers or linkers, or ""
// where there is none or it is not Debian's.
func toolVersion(name string) string {
	text, err := exec.Command(name, "--version").Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	words := strings.Fields(line)
	if len(words) == 0 || !strings.Contains(line, "Debian") {
		return ""
	}
	return words[len(words)-1]
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
