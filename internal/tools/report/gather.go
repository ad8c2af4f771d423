package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/api"
	"github.com/softvpi/softvpi/internal/registry"
	"github.com/softvpi/softvpi/internal/tools/snapshot"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// answerTime is how long the driver has for an answer: one that is stuck is what reports are about.
const answerTime = 10 * time.Second

// gather takes everything. What cannot be had is left out, and named.
func (r *run) gather() {
	r.secrets()
	r.driver()
	r.configuration()
	r.machine()
	r.log("driver.log")
	r.log("driver.log.1")
	r.traces()
	r.dumps()
}

// secrets reads the secrets of the driver, so that none of them is in any file.
func (r *run) secrets() {
	_ = filepath.WalkDir(r.state, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && isSecretName(e.Name()) {
			r.secretFile(path)
		}
		return nil
	})
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); isSecretName(name) {
			r.know([]byte(value))
		}
	}
	b, err := os.ReadFile(r.config)
	if err != nil {
		return
	}
	var doc any
	if json.Unmarshal(b, &doc) == nil {
		r.secretMembers(doc)
	}
}

// secretFile learns a secret that is in a file.
func (r *run) secretFile(path string) {
	if i, err := os.Stat(path); err != nil || !i.Mode().IsRegular() || i.Size() > 1<<16 {
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return
	}
	r.know(b)
	for line := range bytes.Lines(b) {
		if !bytes.HasPrefix(line, []byte("-----")) {
			r.know(line)
		}
	}
}

// secretMembers learns the secrets of a configuration: members with a name of one, and the files that they name.
func (r *run) secretMembers(doc any) {
	switch x := doc.(type) {
	case []any:
		for _, v := range x {
			r.secretMembers(v)
		}
	case map[string]any:
		for name, v := range x {
			text, ok := v.(string)
			switch {
			case !ok:
				r.secretMembers(v)
			case !isSecretName(strings.TrimSuffix(name, "_file")):
			case filepath.IsAbs(text):
				r.secretFile(text)
			default:
				r.know([]byte(text))
			}
		}
	}
}

// driver takes what the driver says of itself, and the snapshot, which is also there without one.
func (r *run) driver() {
	r.add("version.txt", fmt.Appendf(nil, "softvpi %s\n", r.version))
	ctx, cancel := context.WithTimeout(r.ctx, r.patience)
	defer cancel()
	s, err := r.client.Status(ctx)
	switch {
	case err == nil:
		r.running = true
		r.document("status.json", s, nil)
		r.answers(s)
	default:
		r.omit("status, health, counters, registry as a file", err.Error())
	}
	if err != nil && !errors.Is(err, api.ErrNotRunning) {
		r.omit("snapshot", "the driver does not answer")
		return
	}
	for _, name := range []string{"snapshot.html", "snapshot.json"} {
		var out, errs bytes.Buffer
		args := []string{"-o", "-", "-state", r.state}
		if r.socket != "" {
			args = append(args, "-socket", r.socket)
		}
		if strings.HasSuffix(name, ".json") {
			args = append(args, "--json")
		}
		if status := snapshot.Main(r.ctx, tool.Env{Name: "snapshot", Args: args, Stdout: &out, Stderr: &errs}); status != tool.Success {
			r.omit(name, strings.TrimSpace(errs.String()))
			continue
		}
		r.add(name, out.Bytes())
	}
}

// answers takes what a running driver answers.
func (r *run) answers(s *api.Status) {
	ask := func(name string, get func(context.Context) (any, error)) {
		ctx, cancel := context.WithTimeout(r.ctx, r.patience)
		defer cancel()
		x, err := get(ctx)
		r.document(name, x, err)
	}
	ask("health.json", func(ctx context.Context) (any, error) { return r.client.Health(ctx) })
	for _, name := range []string{"counters", "events"} {
		ask(name+".json", func(ctx context.Context) (x any, err error) {
			err = r.client.Get(ctx, "/"+name, url.Values{}, &x)
			return x, err
		})
	}
	ask("captures.json", func(ctx context.Context) (any, error) { return r.client.Captures(ctx) })
	ask("functions.json", func(ctx context.Context) (any, error) { return r.client.Functions(ctx) })
	ask("trace.json", func(ctx context.Context) (any, error) {
		return r.client.Trace(ctx, api.TraceRequest{Action: api.TraceCollect})
	})
	for i := range s.Adapters {
		name := s.Adapters[i].Name
		ask("commands-"+safe(name)+".json", func(ctx context.Context) (any, error) { return r.client.Commands(ctx, name) })
		ask("resources-"+safe(name)+".json", func(ctx context.Context) (any, error) { return r.client.Resources(ctx, name) })
	}
	r.registry()
}

// registry takes the registry as a file that reg import reads.
func (r *run) registry() {
	const root = `HKLM\SYSTEM\CurrentControlSet`
	ctx, cancel := context.WithTimeout(r.ctx, r.patience)
	defer cancel()
	reg, err := r.client.LoadRegistry(ctx)
	if err != nil {
		r.omit("registry.reg", err.Error())
		return
	}
	p, err := registry.ParsePath(root)
	if err != nil {
		r.omit("registry.reg", err.Error())
		return
	}
	k, ok := reg.Key(p)
	if !ok {
		r.omit("registry.reg", "there is no "+root)
		return
	}
	var text strings.Builder
	if err := reg.WriteRegFile(&text, k.Path, registry.Regedit4); err != nil { // not Version5, whose UTF-16 hides secrets
		r.omit("registry.reg", err.Error())
		return
	}
	r.add("registry.reg", []byte(text.String()))
}

// document takes a value as JSON.
func (r *run) document(name string, x any, err error) {
	if err != nil {
		r.omit(name, err.Error())
		return
	}
	b, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		r.omit(name, err.Error())
		return
	}
	r.add(name, append(b, '\n'))
}

// configuration takes the configuration file, and the variables of the environment that softvpi reads.
func (r *run) configuration() {
	r.file("configuration.json", r.config)
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(name, "SOFTVPI_") && isSecretName(name):
			env = append(env, name+"="+removed)
		case slices.ContainsFunc([]string{"SOFTVPI_", "XDG_", "GO", "RDMAV_", "IBV_", "UCX_", "IBSIM_"},
			func(p string) bool { return strings.HasPrefix(name, p) }):
			env = append(env, v)
		}
	}
	slices.Sort(env)
	r.add("environment.txt", []byte(strings.Join(env, "\n")+"\n"))
}

// file takes a file of the machine.
func (r *run) file(name, path string) {
	if path == "" {
		r.omit(name, "this machine has no place for it")
		return
	}
	b, err := readEnd(path, int64(r.limits.file))
	if err != nil {
		r.omit(name, err.Error())
		return
	}
	r.add(name, b)
}

// log takes the end of a log.
func (r *run) log(name string) {
	const most = 1 << 20
	b, err := readEnd(filepath.Join(r.state, name), most)
	if err != nil {
		r.omit(name, err.Error())
		return
	}
	r.add(name, b)
}

// safe returns a name as part of a file's.
func safe(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, name)
}
