package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Mode says what is done about settings that are not as wanted.
type Mode string

// The modes.
const (
	// Leave names those that differ and changes nothing: the machine is somebody
	// else's.
	Leave Mode = ""
	// Set sets them, and warns once of those that the machine does not let it set.
	Set Mode = "set"
	// Protect changes nothing and takes one that differs for an error.
	Protect Mode = "protect"
)

// Setting is a kernel parameter as sysctl names it, and its value.
type Setting struct {
	Name  string
	Value int
}

// Wanted returns what a kubelet wants of the kernel: memory can be promised
// beyond what there is, as containers take it; a lack of it kills a process and
// not the machine; a machine that failed comes back by itself; every container
// can have keys.
func Wanted() []Setting {
	return []Setting{
		{"vm.overcommit_memory", 1},
		{"vm.panic_on_oom", 0},
		{"kernel.panic", 10},
		{"kernel.panic_on_oops", 1},
		{"kernel.keys.root_maxkeys", 1_000_000},
		{"kernel.keys.root_maxbytes", 25_000_000},
	}
}

// Differing is a setting that is not as wanted. Have is -1 where it cannot be
// told, and Err says why.
type Differing struct {
	Setting
	Have int
	Err  error
}

func (d Differing) String() string {
	if d.Err != nil {
		return d.Name + " cannot be read"
	}
	return fmt.Sprintf("%s is %d instead of %d", d.Name, d.Have, d.Value)
}

// Differ compares the settings below dir, which is /proc/sys, with those wanted.
// A kernel that has no such setting lacks nothing.
func Differ(dir string, wanted []Setting) []Differing {
	var list []Differing
	for _, s := range wanted {
		data, err := os.ReadFile(s.path(dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		have := -1
		if err == nil {
			have, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}
		if err != nil {
			list = append(list, Differing{s, -1, err})
		} else if have != s.Value {
			list = append(list, Differing{Setting: s, Have: have})
		}
	}
	return list
}

func (s Setting) path(dir string) string {
	return filepath.Join(dir, filepath.FromSlash(strings.ReplaceAll(s.Name, ".", "/")))
}

// EnsureSettings does about the settings below dir, which is /proc/sys, what the
// mode says. It returns an error in mode Protect only.
func EnsureSettings(dir string, mode Mode, log *slog.Logger) error {
	differ := Differ(dir, Wanted())
	if len(differ) == 0 {
		return nil
	}
	switch mode {
	case Protect:
		return fmt.Errorf("kernel settings: %s; set them, or leave --protect-kernel-defaults out to have them set", names(differ))
	case Leave:
		log.Info("kernel settings are not as a kubelet sets them, and are left so", "settings", names(differ))
		return nil
	}
	var refused []Differing
	var why error
	for _, d := range differ {
		// Truncating means nothing to the kernel; a file that is not there is not made.
		f, err := os.OpenFile(d.path(dir), os.O_WRONLY|os.O_TRUNC, 0)
		if err == nil {
			_, err = f.WriteString(strconv.Itoa(d.Value))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			refused, why = append(refused, d), err
			continue
		}
		log.Info("kernel setting changed", "setting", d.Name, "was", d.Have, "is", d.Value)
	}
	if len(refused) > 0 {
		log.Warn("kernel settings cannot be set", "settings", names(refused), "err", why)
	}
	return nil
}

func names(list []Differing) string {
	var texts []string
	for _, d := range list {
		texts = append(texts, d.String())
	}
	return strings.Join(texts, ", ")
}
