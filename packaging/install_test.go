package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	programs    = `C:\Program Files\SoftVPI`
	dataOf      = `C:\ProgramData\SoftVPI`
	commandLine = `"C:\Program Files\SoftVPI\softvpi.exe" up --config "C:\ProgramData\SoftVPI\driver.json" --state "C:\ProgramData\SoftVPI" ` +
		`--socket "C:\ProgramData\SoftVPI\driver.sock" --system-log eventlog`
)

// whole says what is wrong with an installation of a version whose service runs; empty: nothing.
func (p *pretended) whole(version string) string {
	for path, want := range map[string]string{programs + `\softvpi.exe`: version, programs + `\tools\vstat.exe`: "link",
		`C:\Program Files\WindowsPowerShell\Modules\SoftVPI\SoftVPI.psd1`: version} {
		if p.files[path] != want {
			return path + " is " + p.files[path]
		}
	}
	if len(p.below(programs+".old"))+len(p.below(programs+".new")) > 0 {
		return "old programs stay"
	}
	want := map[string]string{environmentKey + `\\Path`: windowsPath + ";" + programs + `\tools;`,
		environmentKey + `\\SOFTVPI_SOCKET`: dataOf + `\driver.sock`, sourceKey + `\\EventMessageFile`: `%SystemRoot%\System32\EventCreate.exe`,
		sourceKey + `\\TypesSupported`: "7"}
	for k, v := range want {
		if p.registry[k] != v {
			return k + " is " + p.registry[k]
		}
	}
	if len(p.registry) != len(want) {
		return "the registry has more"
	}
	service := map[string]string{"status": "Running", "binary": commandLine, "type": "Automatic", "account": `NT AUTHORITY\LocalService`}
	if !maps.Equal(p.service, service) {
		return "the service is another one"
	}
	return ""
}

// installed returns a system with a version, and a configuration of the user's own.
func installed(t *testing.T) *pretended {
	t.Helper()
	p := newPretended()
	if code := p.run(t, "install.ps1", "-From", `C:\zip`); code != 0 {
		t.Fatalf("status %d\n%s", code, &p.said)
	}
	if wrong := p.whole("1"); wrong != "" {
		t.Fatalf("%s\n%s", wrong, &p.said)
	}
	if p.files[dataOf+`\driver.json`] != "{}" {
		t.Error("there is no configuration")
	}
	p.files[dataOf+`\driver.json`], p.files[dataOf+`\registry.db`] = "mine", "mine"
	p.unpack("2")
	return p
}

// TestInstall: an installation has programs, service, event source and path; an upgrade has the new programs, and the configuration and
// the registry as they were; removing it leaves these alone, and with -Purge nothing.
func TestInstall(t *testing.T) {
	p := installed(t)
	for range 2 {
		if code := p.run(t, "install.ps1", "-From", `C:\zip`); code != 0 || p.whole("2") != "" {
			t.Fatalf("upgraded: status %d, %s\n%s", code, p.whole("2"), &p.said)
		}
	}
	if code := p.run(t, "uninstall.ps1"); code != 0 {
		t.Errorf("status %d\n%s", code, &p.said)
	}
	if p.files[dataOf+`\driver.json`] != "mine" || p.files[dataOf+`\registry.db`] != "mine" {
		t.Error("the configuration did not stay")
	}
	if code := p.run(t, "uninstall.ps1", "-Purge"); code != 0 {
		t.Errorf("status %d\n%s", code, &p.said)
	}
	maps.DeleteFunc(p.files, func(k, _ string) bool { return strings.HasPrefix(k, `C:\zip\`) })
	if path := p.registry[environmentKey+`\\Path`]; len(p.files) != 0 || len(p.registry) != 1 || path != windowsPath+";" || p.service != nil {
		t.Errorf("left are %q, %q, %q", p.files, p.registry, p.service)
	}
}

// TestInstall_Options: directories, when the service starts, and whether now.
func TestInstall_Options(t *testing.T) {
	p := newPretended()
	if code := p.run(t, "install.ps1", "-From", `C:\zip`, "-Directory", `D:\vpi`, "-Data", `E:\vpi`, "-StartupType", "Manual", "-NoStart"); code != 0 {
		t.Fatalf("status %d\n%s", code, &p.said)
	}
	if p.service["status"] != "Stopped" || p.service["type"] != "Manual" || !strings.HasPrefix(p.service["binary"], `"D:\vpi\softvpi.exe" up --config "E:\vpi\`) {
		t.Errorf("the service is %q", p.service)
	}
	if code := p.run(t, "uninstall.ps1", "-Directory", `D:\vpi`, "-Data", `E:\vpi`, "-Purge"); code != 0 || len(p.registry) != 1 || p.service != nil {
		t.Errorf("status %d, left are %q, %q", code, p.registry, p.service)
	}
}

// TestInstall_Refused: who may not install, a system on which the program does not run, and a directory without it; nothing changes.
func TestInstall_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*pretended)
		status int
		says   string
	}{
		"no administrator": {func(p *pretended) { p.user = true }, 1603, "administrator"},
		"another system":   {func(p *pretended) { p.foreign = true }, 1633, "The installation package is not supported on this platform."},
		"no program":       {func(p *pretended) { delete(p.files, `C:\zip\softvpi.exe`) }, 1603, "no softvpi.exe"},
	} {
		p := newPretended()
		c.spoil(p)
		n := len(p.files)
		if code := p.run(t, "install.ps1", "-From", `C:\zip`); code != c.status || !strings.Contains(p.said.String(), c.says) {
			t.Errorf("%s: status %d, %s", name, code, &p.said)
		}
		if p.steps != 0 || len(p.files) != n {
			t.Errorf("%s: something was changed", name)
		}
	}
}

// TestInstall_InUse: while a program runs in the old directory nothing is upgraded, and the old service runs again.
func TestInstall_InUse(t *testing.T) {
	p := installed(t)
	p.inUse = programs
	if code := p.run(t, "install.ps1", "-From", `C:\zip`); code != 1603 || !strings.Contains(p.said.String(), "in use") {
		t.Errorf("status %d, %s", code, &p.said)
	}
	if wrong := p.whole("1"); wrong != "" {
		t.Error(wrong)
	}
}

// TestInstall_Fails: whatever step of an upgrade fails, the old programs and their service run again, the configuration is as it was, and
// the next run completes. One that is killed leaves what the next run completes, too.
func TestInstall_Fails(t *testing.T) {
	p := installed(t)
	p.run(t, "install.ps1", "-From", `C:\zip`)
	steps := p.steps
	if steps < 15 {
		t.Fatalf("%d steps", steps)
	}
	for i := 1; i <= steps; i++ {
		for _, killed := range []bool{false, true} {
			p := installed(t)
			if p.failAt = i; killed {
				p.failAt, p.killAt = 0, i
			}
			code := p.run(t, "install.ps1", "-From", `C:\zip`)
			if !killed && code != 0 && (code != 1603 || p.service["status"] != "Running" || p.files[programs+`\softvpi.exe`] == "") {
				t.Errorf("step %d fails: status %d, the service is %q\n%s", i, code, p.service, &p.said)
			}
			if !killed && code == 0 && !strings.Contains(p.said.String(), "1004") {
				t.Errorf("step %d fails, and nobody says so: %s", i, &p.said)
			}
			p.failAt, p.killAt = 0, 0
			if code := p.run(t, "install.ps1", "-From", `C:\zip`); code != 0 || p.whole("2") != "" {
				t.Errorf("after step %d (killed %v): status %d, %s\n%s", i, killed, code, p.whole("2"), &p.said)
			}
			if p.files[dataOf+`\driver.json`] != "mine" {
				t.Errorf("step %d: the configuration is %q", i, p.files[dataOf+`\driver.json`])
			}
		}
	}
}

// TestUninstall_Fails: whatever step of a removal fails, the next one leaves nothing.
func TestUninstall_Fails(t *testing.T) {
	p := installed(t)
	p.run(t, "uninstall.ps1", "-Purge")
	for i := 1; i <= p.steps; i++ {
		for _, killed := range []bool{false, true} {
			p := installed(t)
			if p.failAt = i; killed {
				p.failAt, p.killAt = 0, i
			}
			if code := p.run(t, "uninstall.ps1", "-Purge"); code != 1603 {
				t.Errorf("step %d: status %d\n%s", i, code, &p.said)
			}
			p.failAt, p.killAt = 0, 0
			code := p.run(t, "uninstall.ps1", "-Purge")
			left := slices.DeleteFunc(slices.Collect(maps.Keys(p.files)), func(f string) bool { return strings.HasPrefix(f, `C:\zip\`) })
			if code != 0 || len(left) != 0 || len(p.registry) != 1 || p.service != nil {
				t.Errorf("after step %d: status %d, left are %q, %q, %q\n%s", i, code, left, p.registry, p.service, &p.said)
			}
		}
	}
}
