package clib

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/ipc/proto"
	"github.com/softvpi/softvpi/internal/os/paths"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/testbed/systemtest"
)

// compile compiles a C source into out with these options of cc. It skips the test where there is no cc.
func compile(t *testing.T, out, source string, options ...string) string {
	t.Helper()
	systemtest.Required(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("there is no C compiler (cc)")
	}
	in := filepath.Join(t.TempDir(), "in.c")
	write(t, in, source)
	if text, err := exec.Command("cc", append([]string{"-o", out, in}, options...)...).CombinedOutput(); err != nil {
		t.Fatalf("cc fails: %v\n%s", err, text)
	}
	return out
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// shared compiles a library that defines these functions under a symbol version and, unless protocol is empty, the
// protocol version that it speaks.
func shared(t *testing.T, dir, name, version, protocol string, functions ...string) string {
	t.Helper()
	source, exported := "#include <stdlib.h>\nvoid *use(void) { return malloc(1); }\n", ""
	for _, f := range functions {
		source += fmt.Sprintf("int %s(void) { return 0; }\n", f)
		exported += f + "; "
	}
	script := fmt.Sprintf("%s { global: %s local: *; };\n", version, exported)
	if protocol != "" {
		source += "const unsigned short svpi_protocol[2] = { " + protocol + " };\n"
		script = strings.Replace(script, "local", "svpi_protocol; local", 1)
	}
	at := filepath.Join(t.TempDir(), "map")
	write(t, at, script)
	return compile(t, filepath.Join(dir, name), source, "-shared", "-fPIC", "-Wl,-soname,"+name, "-Wl,--version-script="+at)
}

// whole returns a directory with the three libraries, in which nothing is missing.
func whole(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	shared(t, dir, verbsLibrary, "IBVERBS_1.1", fmt.Sprintf("%d, %d", proto.Major, proto.Minor), "ibv_get_device_list")
	shared(t, dir, cmLibrary, "RDMACM_1.0", "", "rdma_create_id")
	shared(t, dir, Preload, "PRELOAD", "", "nothing")
	return dir
}

// change replaces some bytes of a file, wherever they occur, by as many others.
func change(t *testing.T, path string, from, to []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(b, from) || len(from) != len(to) {
		t.Fatalf("%s: cannot replace %q by %q: %v", path, from, to, err)
	}
	write(t, path, string(bytes.ReplaceAll(b, from, to)))
}

// machine marks an ELF file as built for another processor: e_machine is at offset 18 of the ELF header.
func machine(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[18], b[19] = 243, 0 // RISC-V, on which no driver runs
	write(t, path, string(b))
}

func TestDoctorOfLibraries(t *testing.T) {
	systemtest.Mark(t)
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		check string
		want  Verdict
		says  string
	}{
		{"whole", func(*testing.T, string) {}, "libraries", Fine, fmt.Sprintf("protocol %d.%d", proto.Major, proto.Minor)},
		{"whole", func(*testing.T, string) {}, "glibc", Fine, "the libraries need 2."},
		{"one is missing", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, cmLibrary)); err != nil {
				t.Fatal(err)
			}
		}, "libraries", Wrong, "there is no"},
		{"one is for another processor", func(t *testing.T, dir string) { machine(t, filepath.Join(dir, Preload)) }, "libraries", Wrong,
			"build it here with make clib"},
		{"no protocol", func(t *testing.T, dir string) { shared(t, dir, verbsLibrary, "IBVERBS_1.1", "", "ibv_get_device_list") },
			"libraries", Wrong, "does not say which protocol"},
		{"another protocol", func(t *testing.T, dir string) {
			shared(t, dir, verbsLibrary, "IBVERBS_1.1", "9999, 7", "ibv_get_device_list")
		},
			"libraries", Wrong, "speaks protocol 9999.7"},
		{"a later glibc", func(t *testing.T, dir string) {
			b, err := readBinary(filepath.Join(dir, cmLibrary))
			if err != nil {
				t.Fatal(err)
			}
			old := fmt.Sprintf("GLIBC_%v", needsGlibc(b))
			change(t, filepath.Join(dir, cmLibrary), []byte(old), []byte(strings.Replace(old, "GLIBC_2", "GLIBC_9", 1)))
		}, "glibc", Wrong, "the libraries need 9."},
	} {
		t.Run(c.name+" "+c.check, func(t *testing.T) {
			dir := whole(t)
			c.spoil(t, dir)
			t.Setenv(directoryVariable, dir)
			found := (&Doctor{Socket: filepath.Join(dir, "none")}).Examine(t.Context(), "")
			if v, text := verdict(t, found, c.check); v != c.want || !strings.Contains(text, c.says) {
				t.Errorf("%v, %s; want %v, %q", v, text, c.want, c.says)
			}
		})
	}
}

func TestDoctorOfASystemWithoutGlibc(t *testing.T) {
	systemtest.Mark(t)
	dir := whole(t)
	for _, f := range []string{verbsLibrary, cmLibrary, Preload} {
		machine(t, filepath.Join(dir, f)) // no C library for it is installed
	}
	d := Doctor{dir: dir}
	d.cLibrary()
	if v, text := verdict(t, d.found, "glibc"); v != Wrong || !strings.Contains(text, "no glibc") {
		t.Errorf("glibc: %v, %s; want wrong, with \"no glibc\"", v, text)
	}
}

// answering returns the socket of a driver that answers every request with this status code and body.
func answering(t *testing.T, code int, body any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", paths.Management(path))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return path
}

func TestDoctorOfDrivers(t *testing.T) {
	for _, c := range []struct {
		name   string
		socket string
		check  string
		want   Verdict
		says   string
	}{
		{"that says nothing to this user", answering(t, http.StatusForbidden, map[string]string{"error": "no"}), "driver", Note,
			"does not answer this user"},
		{"that fails", answering(t, http.StatusInternalServerError, map[string]string{"error": "broken"}), "driver", Wrong, "500"},
		{"that nobody can attach to", answering(t, http.StatusOK, api.Status{Attach: "no memfd"}), "driver", Wrong, "no memfd"},
		{"without adapters that are up", answering(t, http.StatusOK, api.Status{Adapters: make([]api.AdapterStatus, 2)}), "adapters", Wrong,
			"none of 2 is up"},
		{"that does not let in", answering(t, http.StatusOK, api.Status{}), "attach", Wrong, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := (&Doctor{Socket: c.socket}).Examine(t.Context(), "")
			if v, text := verdict(t, found, c.check); v != c.want || !strings.Contains(text, c.says) {
				t.Errorf("%v, %s; want %v, %q", v, text, c.want, c.says)
			}
		})
	}
}

func TestDoctorOfADisabledAdapter(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "one"})
	driverbed.Start(t, cfg)
	if err := api.NewClient(cfg.Socket).SetAdapter(t.Context(), api.AdapterRequest{Adapter: "one"}); err != nil {
		t.Fatal(err)
	}
	d := Doctor{Socket: cfg.Socket, Version: driverbed.Version}
	if v, text := verdict(t, d.Examine(t.Context(), ""), "adapters"); v != Wrong || !strings.Contains(text, "none of 1 is up") {
		t.Errorf("adapters: %v, %s; want wrong, with \"none of 1 is up\"", v, text)
	}
}

func TestDoctorOfTheKernel(t *testing.T) {
	for scope, want := range map[string]Verdict{"0": Fine, "1": Fine, "2": Note, "3": Note} {
		var d Doctor
		d.ptrace(scope)
		if v, text := verdict(t, d.found, "memory"); v != want || want == Note && !strings.Contains(text, "ptrace_scope is "+scope) {
			t.Errorf("ptrace_scope %s: %v, %s; want %v", scope, v, text, want)
		}
	}
	for _, c := range []struct {
		there bool
		dir   string
		want  Verdict
		says  string
	}{
		{true, "", Fine, "there is a character device"},
		{false, libraries(t, t.TempDir(), Preload), Fine, Preload + " shows"},
		{false, "", Note, "make clib"},
		{false, t.TempDir(), Note, "ln -s /dev/null"},
	} {
		d := Doctor{dir: c.dir}
		d.character(c.there)
		if v, text := verdict(t, d.found, "UCX"); v != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%+v: got %v, %s", c, v, text)
		}
	}
}

func TestDoctorOfCompiledPrograms(t *testing.T) {
	systemtest.Mark(t)
	dir := whole(t)
	t.Setenv(directoryVariable, dir)
	later := t.TempDir() // a libibverbs with functions that the installed one lacks
	shared(t, later, verbsLibrary, "IBVERBS_9.9", "", "ibv_of_tomorrow")
	const uses, wants = "int ibv_get_device_list(void);\nint main(void) { return ibv_get_device_list(); }\n",
		"int ibv_of_tomorrow(void);\nint main(void) { return ibv_of_tomorrow(); }\n"
	at := func(name string) string { return filepath.Join(t.TempDir(), name) }
	ours := filepath.Join(dir, verbsLibrary)
	setUID := compile(t, at("setuid"), uses, ours)
	if err := os.Chmod(setUID, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	incomplete := filepath.Join(t.TempDir(), "libgone.so.1")
	compile(t, incomplete, "int gone(void) { return 0; }\n", "-shared", "-fPIC", "-Wl,-soname,libgone-for-good.so.1")
	for _, c := range []struct {
		name, program, check string
		want                 Verdict
		says                 string
	}{
		{"fine", compile(t, at("fine"), uses, ours), "program", Fine, "gets " + verbsLibrary + " from " + dir},
		{"fine", compile(t, at("fine"), uses, ours), "symbols", Fine, "all 1 "},
		{"without verbs", compile(t, at("other"), "int main(void) { return 0; }\n"), "program", Note, "is not linked to"},
		{"set-uid", setUID, "program", Wrong, "set-uid"},
		{"with an RPATH", compile(t, at("rpath"), wants, filepath.Join(later, verbsLibrary), "-Wl,--disable-new-dtags,-rpath,"+later),
			"program", Wrong, "RPATH"},
		{"with a RUNPATH", compile(t, at("runpath"), uses, ours, "-Wl,--enable-new-dtags,-rpath,"+later), "program", Fine, "from " + dir},
		{"of later symbols", compile(t, at("later"), wants, filepath.Join(later, verbsLibrary)), "symbols", Wrong,
			"ibv_of_tomorrow@IBVERBS_9.9"},
		{"without a library", compile(t, at("lacking"), "int gone(void);\nint main(void) { return gone(); }\n", incomplete), "program",
			Wrong, "libgone-for-good.so.1, which"},
	} {
		t.Run(c.name+" "+c.check, func(t *testing.T) {
			found := (&Doctor{Socket: filepath.Join(dir, "none")}).Examine(t.Context(), c.program)
			if v, text := verdict(t, found, c.check); v != c.want || !strings.Contains(text, c.says) {
				t.Errorf("%v, %s; want %v, %q", v, text, c.want, c.says)
			}
		})
	}
	t.Run("static", func(t *testing.T) {
		in, out := at("in.c"), at("static")
		write(t, in, "int main(void) { return 0; }\n")
		if text, err := exec.Command("cc", "-static", "-o", out, in).CombinedOutput(); err != nil {
			t.Skipf("cc makes no static programs here: %s", text)
		}
		found := (&Doctor{Socket: filepath.Join(dir, "none")}).Examine(t.Context(), out)
		if v, text := verdict(t, found, "program"); v != Wrong || !strings.Contains(text, "linked statically") {
			t.Errorf("program: %v, %s; want wrong, with \"linked statically\"", v, text)
		}
	})
}
