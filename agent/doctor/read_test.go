package doctor_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podkeeper/podkeeper/agent/doctor"
)

// Who listens on a port, and how many inotify instances there are, is read from
// the kernel: here of this very process.
func TestReadsItself(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	before := doctor.ReadOpen("/proc")
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	open := doctor.ReadOpen("/proc")
	want := doctor.Port{Port: port, Taken: true, PID: os.Getpid(), Process: string(name[:len(name)-1])}
	if diff := cmp.Diff([]doctor.Port{want}, doctor.ReadPorts("/proc", []int{port}, open)); diff != "" {
		t.Error(diff)
	}
	listener.Close()
	if diff := cmp.Diff([]doctor.Port{{Port: port}}, doctor.ReadPorts("/proc", []int{port}, open)); diff != "" {
		t.Errorf("closed: %s", diff)
	}
	if os.Geteuid() == 0 && doctor.Instances(open) < 1 {
		t.Errorf("%d inotify instances, and %d before, with one of our own", doctor.Instances(open), doctor.Instances(before))
	}
}

// An inode of somebody whose files may not be seen has no process.
func TestPortOfOthers(t *testing.T) {
	proc := t.TempDir()
	if err := os.Mkdir(filepath.Join(proc, "net"), 0o755); err != nil {
		t.Fatal(err)
	}
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:280A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:2808 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 100 0 0 10 0
`
	if err := os.WriteFile(filepath.Join(proc, "net", "tcp"), []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []doctor.Port{{Port: 10250, Taken: true}, {Port: 10248}} // the latter is a connection
	if diff := cmp.Diff(want, doctor.ReadPorts(proc, []int{10250, 10248}, doctor.ReadOpen(proc))); diff != "" {
		t.Error(diff)
	}
}

// A root dir that is not there yet is judged by where it will be.
func TestReadWithNothing(t *testing.T) {
	dir := t.TempDir()
	f := doctor.Read(doctor.Engine{Problem: "down"}, filepath.Join(dir, "a", "b"))
	if len(f.Disks) != 1 || f.Disks[0].Path != dir || f.Disks[0].Capacity == 0 {
		t.Errorf("disks %+v, want that of %s", f.Disks, dir)
	}
	if f.UID != os.Geteuid() || f.Inotify.Instances == 0 || len(f.Ports) != 3 || f.Cgroups.Version == 0 && f.Cgroups.Problem == "" {
		t.Errorf("got %+v", f)
	}
}
