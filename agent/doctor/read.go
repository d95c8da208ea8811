package doctor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/node/kernel"
	"github.com/podkeeper/podkeeper/node/volume"
)

// Read looks at this machine. What there is of the engine is looked at already;
// rootDir is the agent's, which need not be there.
func Read(engine Engine, rootDir string) Facts {
	f := Facts{
		UID: os.Geteuid(), CanProtect: may(unix.CAP_SYS_RESOURCE),
		Engine: engine, Cgroups: readCgroups(), Settings: readSettings(),
		SCTP: kernel.KnowsSCTP(), HugePages: make(map[string]int64),
	}
	for name, bytes := range kernel.HugePages("/sys/kernel/mm/hugepages") {
		f.HugePages[string(name)] = bytes
	}
	open := readOpen("/proc")
	f.Ports = readPorts("/proc", []int{10250, 10255, 10248}, open)
	f.Inotify = readInotify("/proc/sys/fs/inotify", open.inotify)
	root := nearest(rootDir)
	f.Disks = append(f.Disks, readDisk("the root dir", root))
	if f.Engine.Features.Root != "" {
		f.Disks = append(f.Disks, readDisk("the engine", f.Engine.Features.Root))
	}
	if err := (&volume.Host{RootDir: root}).Quotas(); err != nil {
		f.NoQuotas = err.Error()
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		f.Swap = int64(info.Totalswap) * int64(info.Unit)
	}
	return f
}

// may reports whether this process has a capability.
func may(capability int) bool {
	data, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(data)) {
		if digits, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
			return err == nil && set&(1<<capability) != 0
		}
	}
	return false
}

func readCgroups() Cgroups {
	have, err := kernel.ReadControllers("/sys/fs/cgroup")
	if err != nil {
		return Cgroups{Problem: err.Error()}
	}
	c := Cgroups{Version: have.Version}
	for _, l := range have.Lacks() {
		c.Lacks = append(c.Lacks, Lack(l))
	}
	_, err = os.Stat("/run/systemd/system") // as sd_booted(3) asks
	c.Systemd = err == nil
	return c
}

func readSettings() []Setting {
	var list []Setting
	for _, d := range kernel.Differ("/proc/sys", kernel.Wanted()) {
		s := Setting{Name: d.Name, Have: d.Have, Want: d.Value}
		if d.Err != nil {
			s.Problem = d.Err.Error()
		}
		list = append(list, s)
	}
	return list
}

// open is what processes have open, of those that may be looked into.
type open struct {
	sockets map[string]int // process by the socket's inode
	inotify int            // instances of our user; -1 is unknown
}

func readOpen(proc string) open {
	o := open{sockets: make(map[string]int)}
	processes, _ := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	for _, dir := range processes {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		var owner unix.Stat_t
		ours := unix.Stat(dir, &owner) == nil && int(owner.Uid) == os.Geteuid()
		files, err := os.ReadDir(filepath.Join(dir, "fd"))
		if ours && errors.Is(err, fs.ErrPermission) {
			o.inotify = -1 << 31
		}
		for _, file := range files {
			switch target, _ := os.Readlink(filepath.Join(dir, "fd", file.Name())); {
			case ours && target == "anon_inode:inotify":
				o.inotify++
			case strings.HasPrefix(target, "socket:["):
				o.sockets[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = pid
			}
		}
	}
	o.inotify = max(o.inotify, -1)
	return o
}

// Holder says who listens on a TCP port, for a message, as far as that may be known.
func Holder(port int) string {
	p := readPorts("/proc", []int{port}, readOpen("/proc"))[0]
	if p.PID == 0 {
		return "another program, which may not be seen"
	}
	return fmt.Sprintf("%s (process %d)", p.Process, p.PID)
}

// readPorts looks in the kernel's tables of TCP sockets for those that listen.
func readPorts(proc string, numbers []int, o open) []Port {
	const listens = "0A"
	inodes := make(map[int]string)
	for _, table := range []string{"tcp", "tcp6"} {
		file, err := os.Open(filepath.Join(proc, "net", table))
		if err != nil {
			continue
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[3] != listens {
				continue
			}
			_, digits, _ := strings.Cut(fields[1], ":")
			if port, err := strconv.ParseInt(digits, 16, 32); err == nil {
				inodes[int(port)] = fields[9]
			}
		}
	}
	var list []Port
	for _, number := range numbers {
		p := Port{Port: number}
		var inode string
		if inode, p.Taken = inodes[number]; p.Taken {
			p.PID = o.sockets[inode]
			name, _ := os.ReadFile(fmt.Sprintf("%s/%d/comm", proc, p.PID))
			p.Process = strings.TrimSpace(string(name))
		}
		list = append(list, p)
	}
	return list
}

func readInotify(dir string, used int) Inotify {
	number := func(name string) int {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		n, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		return n
	}
	i := Inotify{Instances: number("max_user_instances"), Watches: number("max_user_watches"), Used: used}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		i.Problem = err.Error()
		return i
	}
	unix.Close(fd)
	return i
}

// nearest returns the path, or what of it there is already.
func nearest(path string) string {
	for {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func readDisk(of, path string) Disk {
	d := Disk{Of: of, Path: path}
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		d.Problem = err.Error()
		return d
	}
	d.Available, d.Capacity = int64(s.Bavail)*s.Bsize, int64(s.Blocks)*s.Bsize
	d.InodesAvailable, d.InodesTotal = int64(s.Ffree), int64(s.Files)
	return d
}
