package report

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/driver/config"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/testbed/driverbed"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := tool.Env{Name: "softvpi report", Args: args, Stdout: &out, Stderr: &errs}
	status = report(t.Context(), env, "9.9", 5*time.Minute)
	return status, out.String(), errs.String()
}

// unpack returns the files of an archive, without the folder that has the archive's name.
func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	put := func(name string, r io.Reader) {
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(name, "/")
		files[path.Clean(rest)] = string(text)
	}
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			put(f.Name, r)
		}
		return files
	}
	g, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(g); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		put(h.Name, r)
	}
}

// planted are secrets, each of which the test puts somewhere else.
var planted = []string{"tok-3f9a7c51d2", "fabric-secret-88aa", "Env1ronment!pw", "reg-Pa55word", "MIIEvplantedprivatekey", "urlPassw0rd",
	"bearer-77e1f0", "inline-psk-1234", "command-line-token-5"}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// plant puts secrets where a driver and its users have them, and where they may have slipped to. It returns the configuration file.
func plant(t *testing.T, state string) (cfg string) {
	t.Helper()
	write(t, filepath.Join(state, "api-token"), planted[0]+"\n")
	key := filepath.Join(t.TempDir(), "shared-secret-of-cables")
	write(t, key, planted[1]+"\n")
	t.Setenv("SOFTVPI_TEST_PASSWORD", planted[2])
	pem := "-----BEGIN PRIVATE KEY-----\n" + planted[4] + "\n-----END PRIVATE KEY-----\n"
	write(t, filepath.Join(state, "driver.log"), "level=WARN msg=start adapter=left\ntoken "+planted[0]+" and "+planted[1]+" and "+planted[2]+"\n"+pem+
		"fetch https://user:"+planted[5]+"@example.net/x\nAuthorization: Bearer "+planted[6]+"\nrun --token="+planted[8]+"\n")
	write(t, filepath.Join(state, "LogFiles/Mlnx/Mellanox-Trace.txt"), "time verbose driver \"-\" "+planted[0]+"\n")
	write(t, filepath.Join(state, "temp/dmn-left-GENERAL-USER-NA--1/commands.log"), "open by program "+planted[1]+"\n")
	write(t, filepath.Join(state, "temp/dmn-left-GENERAL-USER-NA--1/core.bin"), "\x00"+planted[0])
	cfg = filepath.Join(t.TempDir(), "driver.json")
	write(t, cfg, `{"fabric": {"cables": "x", "key": "`+key+`", "shared_key" : "`+planted[7]+`"}, "adapters": [{"name": "left"}]}`)
	return cfg
}

func clean(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		for _, secret := range planted {
			if strings.Contains(text, secret) {
				t.Errorf("%s has the secret %q", name, secret)
			}
		}
	}
}

// TestWithDriver: the report of a running driver has all that it promises, in both kinds of archives, and none of the planted secrets.
func TestWithDriver(t *testing.T) {
	cfg := driverbed.Config(t, config.Adapter{Name: "left"}, config.Adapter{Name: "right", Generation: "mlx4"})
	d := driverbed.Start(t, cfg)
	file := plant(t, cfg.State)
	client := api.NewClient(cfg.Socket)
	if _, err := client.Set(t.Context(), "left", "*JumboPacket", "9000"); err != nil {
		t.Fatal(err)
	}
	changes, err := registry.ParseRegFile([]byte("Windows Registry Editor Version 5.00\r\n\r\n" +
		`[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\SoftVPI\Test]` + "\r\n" + `"AdminPassword"="` + planted[3] + `"` + "\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ChangeRegistry(t.Context(), changes, true); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"r.tar.gz", "r.tgz", "r.zip"} {
		out := filepath.Join(t.TempDir(), name)
		status, said, errs := call(t, "-o", out, "-socket", cfg.Socket, "-state", cfg.State, "-config", file)
		if status != tool.Success || errs != "" {
			t.Fatalf("status %d: %s", status, errs)
		}
		files := unpack(t, out)
		clean(t, files)
		clean(t, map[string]string{"what it prints": said})
		for name, want := range map[string]string{
			"README.txt": "A driver is running", "version.txt": "softvpi 9.9", "status.json": `"left"`, "health.json": `"live": true`,
			"counters.json": "instances", "events.json": "DriverStarted", "registry.reg": `"*JumboPacket"="9000"`, "snapshot.html": "left",
			"snapshot.json": `"running": true`, "configuration.json": `"cables": "x"`, "machine.txt": "processors",
			"environment.txt": "SOFTVPI_TEST_PASSWORD=" + removed, "driver.log": "msg=start adapter=left", "trace.json": "records",
			"dumps.txt": "commands.log", "dumps/dmn-left-GENERAL-USER-NA--1/commands.log": "open by program " + removed,
			"commands-left.json": "", "resources-right.json": "",
		} {
			if text, ok := files[name]; !ok || !strings.Contains(text, want) {
				t.Errorf("%s: there is %v, without %q", name, ok, want)
			}
		}
		if s := files["README.txt"]; !strings.Contains(s, "core.bin: is not text") || !strings.Contains(said, s) ||
			!strings.Contains(s, "secrets removed: ") {
			t.Errorf("README.txt does not say what was left out: %s", s)
		}
		if s := files["registry.reg"]; !strings.Contains(s, `"AdminPassword"="`+removed+`"`) {
			t.Errorf("the registry does not name what was removed: %s", s)
		}
		if i, err := os.Stat(out); err != nil || i.Mode().Perm()&0o077 != 0 {
			t.Errorf("the archive is for others: %v, %v", i.Mode(), err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWithoutDriver: without a driver the report has what is on disk, says so, and has no secrets either.
func TestWithoutDriver(t *testing.T) {
	state := t.TempDir()
	file := plant(t, state)
	out := filepath.Join(t.TempDir(), "r.tar.gz")
	status, _, errs := call(t, "-o", out, "-socket", filepath.Join(state, "none"), "-state", state, "-config", file)
	if status != tool.Success {
		t.Fatalf("status %d: %s", status, errs)
	}
	files := unpack(t, out)
	clean(t, files)
	for name, want := range map[string]string{"README.txt": "No driver answers", "driver.log": "msg=start", "snapshot.json": `"running": false`,
		"traces/Mellanox-Trace.txt": "verbose driver"} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q: %s", name, want, files[name])
		}
	}
	if _, ok := files["status.json"]; ok || !strings.Contains(files["README.txt"], "status, health, counters") {
		t.Error("what only a driver knows is not left out")
	}
}

// TestRefusals: what cannot be is refused before anything is gathered.
func TestRefusals(t *testing.T) {
	for want, args := range map[string][]string{
		`-o is "x.rar"; allowed: a name that ends in .tar.gz, .tgz or .zip`: {"-o", "x.rar"},
		`-o is ".zip"`:        {"-o", ".zip"},
		"-config: ":           {"-config", filepath.Join(t.TempDir(), "none")},
		"unexpected argument": {"x"},
	} {
		if status, out, errs := call(t, args...); status != tool.Usage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d, %q, want %q", args, status, errs, want)
		}
	}
}

// TestRedactor: what looks like a secret is removed, with its name kept, and what does not stays.
func TestRedactor(t *testing.T) {
	var r redactor
	r.know([]byte("known-value\n"))
	r.know([]byte("short"))
	for in, want := range map[string]string{
		"a known-value b short":                             "a [removed] b short",
		"a a25vd24tdmFsdWU= b":                              "a [removed] b",
		`{"api_token": "x\"y", "tokens": 5}`:                `{"api_token": "[removed]", "tokens": 5}`,
		`{"password":null,"a":1}`:                           `{"password":"[removed]","a":1}`,
		`{"M_Key": 77}`:                                     `{"M_Key": "[removed]"}`,
		`"SM_MKey"=dword:00000005`:                          `"SM_MKey"="[removed]"`,
		"\"Secret\"=hex:01,02,\\\r\n  03,04\r\n\"a\"=\"b\"": "\"Secret\"=\"[removed]\"\r\n\"a\"=\"b\"",
		"--token=abc --mtu=4096":                            "--token=[removed] --mtu=4096",
		"passwd: 'a b' next":                                "passwd: [removed] next",
		"Registry Key: NumRSSQueues":                        "Registry Key: NumRSSQueues",
		"Authorization: Basic dTpw":                         "Authorization: Basic [removed]",
		"udp://host:4791":                                   "udp://host:4791",
		"https://u:p@host/":                                 "https://u:[removed]@host/",
		"-----BEGIN EC PRIVATE KEY-----\nAA":                "[removed]",
		"-----BEGIN CERTIFICATE-----\nAA":                   "-----BEGIN CERTIFICATE-----\nAA",
	} {
		got, n := r.text([]byte(in))
		if string(got) != want || (n > 0) != (in != want) {
			t.Errorf("%q: %q, %d removed; want %q", in, got, n, want)
		}
		if again, n := r.text(got); !bytes.Equal(again, got) || n != 0 {
			t.Errorf("%q: the second time %q, %d removed", in, again, n)
		}
	}
}

// TestKnownValuesNeverStay: wherever a known value is in a text, it is not in the result.
func TestKnownValuesNeverStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r redactor
		word := rapid.StringMatching(`[a-z0-9]{6,12}`)
		secrets := rapid.SliceOfN(word, 1, 4).Draw(t, "secrets")
		text := ""
		for _, s := range secrets {
			r.know([]byte(s))
			text += rapid.StringMatching(`[a-z0-9 =":\n]{0,20}`).Draw(t, "between") + s
		}
		got, _ := r.text([]byte(text))
		for _, s := range secrets {
			if bytes.Contains(bytes.ReplaceAll(got, []byte(removed), nil), []byte(s)) && bytes.Contains(got, []byte(s)) {
				t.Fatalf("%q is in %q", s, got)
			}
		}
	})
}

// TestSizes: of a long file the end is taken, and of too many files some are named as left out.
func TestSizes(t *testing.T) {
	const most = 1000
	a := archive{limits: limits{most, 4 * most}}
	a.add("long", append(bytes.Repeat([]byte("a"), most), "the end"...))
	if f := a.files[0]; len(f.data) != most || !bytes.HasSuffix(f.data, []byte("the end")) || !strings.Contains(a.lines[0], "the last 1000 of") {
		t.Errorf("%d bytes are taken: %s", len(f.data), a.lines)
	}
	for range 4 {
		a.add("more", bytes.Repeat([]byte("b"), most))
	}
	if a.bytes != 4*most || len(a.left) != 1 {
		t.Errorf("%d bytes, left out: %q", a.bytes, a.left)
	}
}
