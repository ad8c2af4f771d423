package verbs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	engine "tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/softvpi/softvpi/internal/cdi"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/testbed/await"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// inContainer runs a command as an engine does: in a root directory of its own, with mounts and variables, as a user without
// privileges, in a PID namespace of its own. Nothing else of the host's /tmp, where the driver's socket and the libraries are,
// is there.
const inContainer = `set -e
mount --make-rprivate /
mount -t tmpfs t "$W"
mkdir "$W/upper" "$W/work" "$W/root"
mount -t overlay o -o "lowerdir=/,upperdir=$W/upper,workdir=$W/work" "$W/root"
for m in $MOUNTS; do mkdir -p "$W/root/.mounts${m#*:}"; mount --rbind "${m%%:*}" "$W/root/.mounts${m#*:}"; done
mount -t tmpfs t "$W/root/tmp"
mount -t proc proc "$W/root/proc"
for m in $MOUNTS; do mkdir -p "$W/root${m#*:}"; mount --move "$W/root/.mounts${m#*:}" "$W/root${m#*:}"; done
exec chroot "$W/root" setpriv --reuid 12345 --regid 12345 --clear-groups --no-new-privs /usr/bin/env -i PATH=/usr/bin:/bin $VARIABLES "$@"
`

// Two containers with a device of the specification each use the adapters of one driver outside, unprivileged.
func TestContainersByCDI(t *testing.T) {
	systemtest.Mark(t)
	needLibraries(t)
	systemtest.Programs(t, "unshare", "setpriv", "chroot", "ibv_rc_pingpong")
	if os.Geteuid() != 0 {
		t.Skip("needs root: a container here is mount namespaces of its own")
	}
	cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right"})
	cfg.Containers = &config.Containers{Count: 2, Memory: 64 << 20}
	d := driverbed.Start(t, cfg)
	if err := os.Chmod(libraries.dir, 0o755); err != nil { // as those of a package
		t.Fatal(err)
	}
	source := cdi.Source{Socket: cfg.Socket, Containers: []int{0, 1}, Libraries: libraries.dir, Preload: true}
	spec, err := source.Spec()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := cdi.Write(dir, spec); err != nil {
		t.Fatal(err)
	}
	start := func(device string, command ...string) (*exec.Cmd, *strings.Builder) {
		t.Helper()
		cache, err := engine.NewCache(engine.WithSpecDirs(dir), engine.WithAutoRefresh(false))
		if err != nil {
			t.Fatal(err)
		}
		container := &oci.Spec{Process: &oci.Process{}}
		if _, err := cache.InjectDevices(container, cdi.Name(device)); err != nil {
			t.Fatal(err)
		}
		var mounts []string
		for _, m := range container.Mounts {
			mounts = append(mounts, m.Source+":"+m.Destination)
		}
		c := exec.Command("unshare", append([]string{"--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inContainer, "sh"}, command...)...)
		c.Env = append(os.Environ(), "W="+t.TempDir(), "MOUNTS="+strings.Join(mounts, " "), "VARIABLES="+strings.Join(container.Process.Env, " "))
		var out strings.Builder
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c, &out
	}
	probe, said := start("0", "sh", "-c", "test ! -e "+filepath.Dir(cfg.Socket)+" && ibv_devices")
	err = probe.Wait()
	if err != nil && strings.Contains(said.String(), "mount") {
		t.Skipf("no overlay here: %s", said)
	}
	if err != nil || !strings.Contains(said.String(), "softvpi0") || !strings.Contains(said.String(), "softvpi1") {
		t.Fatalf("ibv_devices: %v\n%s", err, said)
	}
	port := port()
	server, heard := start("0", "ibv_rc_pingpong", "-p", port, "-g", "0", "-d", "softvpi0", "-c")
	await.Eventually(t, "the server is attached", func() bool { return d.Status().Held.Containers[0].Memory > 0 })
	client, told := start("1", "sh", "-c", "for i in $(seq 100); do ibv_rc_pingpong -p "+port+
		" -g 0 -d softvpi1 -c localhost && exit; sleep 0.2; done; exit 1")
	if err := client.Wait(); err != nil {
		t.Fatalf("the client: %v\n%s\nthe server:\n%s", err, told, heard)
	}
	if err := server.Wait(); err != nil || !strings.Contains(heard.String(), "1000 iters") {
		t.Errorf("the server: %v\n%s", err, heard)
	}
}
