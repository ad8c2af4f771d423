package mlxtool

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/driver/dump/register"
	"github.com/softvpi/softvpi/internal/os/inputfile"
)

const (
	// mostRegisters is the largest file that decode reads: what 16 ports with all their objects make is less.
	mostRegisters = 1 << 30
	// wideRecord is the number of fields from which on a record has a table of its own.
	wideRecord = 12
)

// decode shows the registers in the files of a dump: all of the first, and what differs in the next ones of the same set. It needs
// no driver.
func (r *run) decode() (report, error) {
	if len(r.args) == 0 {
		return nil, r.usagef("the directory is missing")
	}
	only, err := r.blocks(r.args[1:])
	if err != nil {
		return nil, err
	}
	files, err := registerFiles(r.args[0])
	if err != nil {
		return nil, r.usagef("directory %v", err)
	}
	var out report
	var before []register.Decoded
	set := ""
	for _, file := range files {
		text, err := inputfile.Read(file, mostRegisters)
		if err != nil {
			return nil, err
		}
		ports, err := register.Read(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if s := strings.TrimRight(strings.TrimSuffix(file, ".log"), "0123456789"); s != set {
			out, set = append(out, registerTables(file, ports, only)...), s
		} else {
			out = append(out, registerChanges(file, before, ports, only))
		}
		before = ports
	}
	return out, nil
}

// blocks returns the tables that are named; none: all.
func (r *run) blocks(names []string) (only []*register.Block, err error) {
	for _, name := range names {
		b := register.BlockOf(name)
		if b == nil {
			var all []string
			for _, b := range register.Blocks {
				all = append(all, b.Name)
			}
			return nil, r.usagef("table is %q; there are: %s", name, strings.Join(all, ", "))
		}
		only = append(only, b)
	}
	if len(only) == 0 {
		only = register.Blocks
	}
	return only, nil
}

// registerFiles returns the files of registers in a directory, in order; a file's name means that file.
func registerFiles(dir string) (files []string, err error) {
	if strings.HasSuffix(dir, ".log") {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries { // which are sorted
		if strings.Contains(e.Name(), "crspace_") && strings.HasSuffix(e.Name(), ".log") && e.Type().IsRegular() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%q has no files crspace_<n>.log or <set>_crspace_<n>.log", dir)
	}
	return files, nil
}

// registerTables shows all that a file has.
func registerTables(file string, ports []register.Decoded, only []*register.Block) (out report) {
	head := table{Label: "File", Name: file, Fields: []string{"Port", "Time", "Generation", "Left out"}}
	for i, p := range ports {
		head.add(i+1, p.Time.Format(time.RFC3339Nano), p.Generation, p.LeftOut)
	}
	out = append(out, head)
	for i, p := range ports {
		for _, x := range p.Tables {
			if !slices.Contains(only, x.Block) {
				continue
			}
			title := fmt.Sprintf("port %d, %s: %s", i+1, x.Name, x.About)
			if len(x.Fields) >= wideRecord {
				out = append(out, recordTables(title, x)...)
				continue
			}
			t := table{Label: "Registers", Name: title, Empty: "none"}
			for _, f := range x.Fields {
				t.Fields = append(t.Fields, f.Name)
			}
			for _, record := range x.Records {
				var row []any
				for _, v := range x.Values(record) {
					row = append(row, v.String())
				}
				t.add(row...)
			}
			out = append(out, t)
		}
	}
	return out
}

// recordTables returns a table of fields for each record.
func recordTables(title string, x register.Table) (out report) {
	for i, record := range x.Records {
		t := table{Label: "Registers", Name: fmt.Sprintf("%s, record %d", title, i), Fields: []string{"Field", "Value"}}
		for _, v := range x.Values(record) {
			t.add(v.Name, v.String())
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		out = append(out, table{Label: "Registers", Name: title, Empty: "none"})
	}
	return out
}

// registerChanges shows what differs from the file before.
func registerChanges(file string, before, now []register.Decoded, only []*register.Block) table {
	t := table{Label: "Changes", Name: file, Fields: []string{"Port", "Table", "Record", "Field", "From", "To"}, Empty: "nothing has changed"}
	for i := range now {
		if i >= len(before) {
			t.add(i+1, notKnown, notKnown, notKnown, "-", "there")
			continue
		}
		for j, x := range now[i].Tables {
			if !slices.Contains(only, x.Block) {
				continue
			}
			was, is := keyed(x.Block, before[i].Tables[j].Records), keyed(x.Block, x.Records)
			for _, key := range slices.Sorted(maps.Keys(is)) {
				values, old := is[key], was[key]
				if old == nil {
					t.add(i+1, x.Name, key, notKnown, "-", "there")
					continue
				}
				for n, v := range old {
					if a, b := v.String(), values[n].String(); a != b {
						t.add(i+1, x.Name, key, v.Name, a, b)
					}
				}
			}
			for _, key := range slices.Sorted(maps.Keys(was)) {
				if is[key] == nil {
					t.add(i+1, x.Name, key, notKnown, "there", "-")
				}
			}
		}
	}
	return t
}

// keyed returns the values of records by what identifies them: their first field, with a number where several have the same.
func keyed(b *register.Block, records [][]uint32) map[string][]register.Value {
	out := map[string][]register.Value{}
	for _, record := range records {
		v := b.Values(record)
		key := v[0].String()
		for n := 2; out[key] != nil; n++ {
			key = fmt.Sprintf("%s#%d", v[0].String(), n)
		}
		out[key] = v
	}
	return out
}
