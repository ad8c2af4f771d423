package osmtest

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/softvpi/softvpi/internal/tools/tool"
	"github.com/softvpi/softvpi/wire/mad"
)

// field is a line of a record in an inventory file, with the location of its value.
type field struct {
	name    string
	at      int // byte
	bytes   int
	shift   int // of the value; bits is its width if not all count
	bits    int
	form    func([]byte, uint64) string // nil: 0x and upper-case digits
	comment bool                        // not compared
}

// kind is a kind of records.
type kind struct {
	title, define string
	attr          uint16
	length        int
	key           []string // fields that identify a record
	fields        []field
}

func guid(_ []byte, v uint64) string { return fmt.Sprintf("0x%016x", v) }

func nodeType(_ []byte, v uint64) string {
	names := []string{1: "Channel Adapter", 2: "Switch", 3: "Router"}
	if v < 1 || v > 3 {
		return fmt.Sprintf("0x%X # (UNKNOWN)", v)
	}
	return fmt.Sprintf("0x%X # (%s)", v, names[v])
}

func portState(_ []byte, v uint64) string {
	names := []string{"NO_CHANGE", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTDEFER"}
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("0x%X", v)
}

func text(b []byte, _ uint64) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

func gid(b []byte, _ uint64) string { return fmt.Sprintf("0x%x 0x%x", b[:8], b[8:16]) }

// kinds lists those of an inventory, in order (osmtest(8)).
var kinds = []kind{
	{"Node Records", "NODE", mad.AttrNodeRecord, 108, []string{"lid"}, []field{
		{name: "lid", at: 0, bytes: 2}, {name: "base_version", at: 4, bytes: 1}, {name: "class_version", at: 5, bytes: 1},
		{name: "node_type", at: 6, bytes: 1, form: nodeType}, {name: "num_ports", at: 7, bytes: 1},
		{name: "sys_guid", at: 8, bytes: 8, form: guid},
		{name: "node_guid", at: 16, bytes: 8, form: guid}, {name: "port_guid", at: 24, bytes: 8, form: guid},
		{name: "partition_cap", at: 32, bytes: 2},
		{name: "device_id", at: 34, bytes: 2}, {name: "revision", at: 36, bytes: 4}, {name: "port_num", at: 40, bytes: 1, comment: true},
		{name: "vendor_id", at: 41, bytes: 3, comment: true}, {name: "node_desc", at: 44, bytes: 64, form: text, comment: true},
	}},
	{"PortInfo Records", "PORT", mad.AttrPortInfoRecord, 58, []string{"lid", "port_num"}, []field{
		{name: "lid", at: 0, bytes: 2}, {name: "port_num", at: 2, bytes: 1}, {name: "m_key", at: 4, bytes: 8, form: guid},
		{name: "subnet_prefix", at: 12, bytes: 8, form: guid}, {name: "base_lid", at: 20, bytes: 2},
		{name: "master_sm_base_lid", at: 22, bytes: 2},
		{name: "capability_mask", at: 24, bytes: 4}, {name: "diag_code", at: 28, bytes: 2}, {name: "m_key_lease_period", at: 30, bytes: 2},
		{name: "local_port_num", at: 32, bytes: 1}, {name: "link_width_enabled", at: 33, bytes: 1},
		{name: "link_width_supported", at: 34, bytes: 1},
		{name: "link_width_active", at: 35, bytes: 1}, {name: "link_speed_supported", at: 36, bytes: 1, shift: 4},
		{name: "port_state", at: 36, bytes: 1, bits: 4, form: portState}, {name: "state_info2", at: 37, bytes: 1},
		{name: "mpb", at: 38, bytes: 1, shift: 6},
		{name: "lmc", at: 38, bytes: 1, bits: 3}, {name: "link_speed", at: 39, bytes: 1}, {name: "mtu_smsl", at: 40, bytes: 1},
		{name: "vl_cap", at: 41, bytes: 1},
		{name: "vl_high_limit", at: 42, bytes: 1}, {name: "vl_arb_high_cap", at: 43, bytes: 1}, {name: "vl_arb_low_cap", at: 44, bytes: 1},
		{name: "mtu_cap", at: 45, bytes: 1, bits: 4}, {name: "vl_stall_life", at: 46, bytes: 1}, {name: "vl_enforce", at: 47, bytes: 1},
		{name: "m_key_violations", at: 48, bytes: 2}, {name: "p_key_violations", at: 50, bytes: 2},
		{name: "q_key_violations", at: 52, bytes: 2},
		{name: "guid_cap", at: 54, bytes: 1}, {name: "subnet_timeout", at: 55, bytes: 1, bits: 5},
		{name: "resp_time_value", at: 56, bytes: 1, bits: 5},
		{name: "error_threshold", at: 57, bytes: 1},
	}},
	{"Path Records", "PATH", mad.AttrPathRecord, mad.PathRecordLen, []string{"dgid", "sgid", "dlid", "slid", "pkey"}, []field{
		{name: "dgid", at: 8, bytes: 16, form: gid}, {name: "sgid", at: 24, bytes: 16, form: gid}, {name: "dlid", at: 40, bytes: 2},
		{name: "slid", at: 42, bytes: 2},
		{name: "hop_flow_raw", at: 44, bytes: 4, comment: true}, {name: "tclass", at: 48, bytes: 1, comment: true},
		{name: "num_path", at: 49, bytes: 1, comment: true},
		{name: "pkey", at: 50, bytes: 2}, {name: "sl", at: 53, bytes: 1, bits: 4, comment: true},
		{name: "qos_class", at: 52, bytes: 2, shift: 4, comment: true},
		{name: "mtu", at: 54, bytes: 1, comment: true}, {name: "rate", at: 55, bytes: 1, comment: true},
		{name: "pkt_life", at: 56, bytes: 1, comment: true},
		{name: "preference", at: 57, bytes: 1, comment: true},
	}},
	{"Link Records", "LINK", mad.AttrLinkRecord, 6, []string{"from_lid", "from_port_num", "to_port_num", "to_lid"}, []field{
		{name: "from_lid", at: 0, bytes: 2}, {name: "from_port_num", at: 2, bytes: 1}, {name: "to_port_num", at: 3, bytes: 1},
		{name: "to_lid", at: 4, bytes: 2},
	}},
}

// value returns the text of a field of a record.
func (f *field) value(record []byte) string {
	b := record[f.at : f.at+f.bytes]
	var v uint64
	for _, x := range b[:min(len(b), 8)] {
		v = v<<8 | uint64(x)
	}
	if v >>= f.shift; f.bits > 0 {
		v &= 1<<f.bits - 1
	}
	if f.form != nil {
		return f.form(b, v)
	}
	return fmt.Sprintf("0x%X", v)
}

// record is a record of an inventory: its values by field.
type record map[string]string

// read converts a record of subnet administration.
func (k *kind) read(b []byte) record {
	r := record{}
	for i := range k.fields {
		f := &k.fields[i]
		v, _, _ := strings.Cut(f.value(b), " #")
		r[f.name] = v
	}
	return r
}

// id returns what identifies a record among those of its kind.
func (k *kind) id(r record) string {
	var words []string
	for _, n := range k.key {
		words = append(words, n+" "+r[n])
	}
	return strings.Join(words, " ")
}

// records returns those of a kind that subnet administration has; for paths those from each port, by its
// GUID.
func (t *test) records(k *kind) ([][]byte, error) {
	if k.attr != mad.AttrPathRecord {
		return t.table(k.attr, 0, nil, k.length)
	}
	if t.o.world {
		p := mad.PathRecord{NumPath: 1}
		return t.table(k.attr, mad.PathNumPath, p.Append(nil), k.length)
	}
	nodes, err := t.table(mad.AttrNodeRecord, 0, nil, kinds[0].length)
	if err != nil {
		return nil, err
	}
	// In the order of OpenSM's osmtest, which compares GUIDs as words in host byte order.
	slices.SortFunc(nodes, func(a, b []byte) int {
		return cmp.Compare(binary.LittleEndian.Uint64(a[24:]), binary.LittleEndian.Uint64(b[24:]))
	})
	own := t.ownGID()
	var all [][]byte
	for _, n := range nodes {
		p := mad.PathRecord{NumPath: 1, SGID: own}
		copy(p.SGID[8:], n[24:32])
		paths, err := t.table(k.attr, mad.PathSGID|mad.PathNumPath, p.Append(nil), k.length)
		if err != nil {
			return nil, err
		}
		all = append(all, paths...)
	}
	return all, nil
}

// create writes the inventory file.
func (t *test) create() (err error) {
	f, err := os.Create(t.o.inventory)
	if err != nil {
		return tool.Usagef("inventory file (-i): %v", err)
	}
	w := bufio.NewWriter(f)
	defer func() {
		if e := w.Flush(); err == nil {
			err = e
		}
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	for i := range kinds {
		k := &kinds[i]
		if k.attr == mad.AttrPathRecord && t.o.noPaths {
			continue
		}
		list, err := t.records(k)
		if err != nil {
			return err
		}
		t.say(logInfo, "%d %s", len(list), k.title)
		k.write(w, list)
	}
	return nil
}

func (k *kind) write(w io.Writer, list [][]byte) {
	fmt.Fprintf(w, "#\n# %s\n#\n", k.title)
	for _, b := range list {
		fmt.Fprintf(w, "DEFINE_%s\n", k.define)
		for i := range k.fields {
			f := &k.fields[i]
			name := f.name
			if f.comment {
				name = "# " + name
			}
			fmt.Fprintf(w, "%-24s%s\n", name, f.value(b))
		}
		fmt.Fprint(w, "END\n\n")
	}
}

// maxRecords limits how much of an inventory file is read.
const maxRecords = 1 << 22

// readInventory reads a file, ours or OpenSM's. The error is a *tool.UsageError, which says which line is
// wrong.
func readInventory(r io.Reader, name string) (map[string][]record, error) {
	all := map[string][]record{}
	s := bufio.NewScanner(r)
	var k *kind
	var now record
	wrong := func(n int, format string, args ...any) error {
		return tool.Usagef("inventory file (-i) %s line %d: %s", name, n, fmt.Sprintf(format, args...))
	}
	total := 0
	for n := 1; s.Scan(); n++ {
		line, _, _ := strings.Cut(s.Text(), "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case k == nil:
			i := slices.IndexFunc(kinds, func(k kind) bool { return "DEFINE_"+k.define == words[0] })
			if i < 0 {
				return nil, wrong(n, "%q; allowed: DEFINE_NODE, DEFINE_PORT, DEFINE_PATH, DEFINE_LINK", words[0])
			}
			k, now = &kinds[i], record{}
		case words[0] == "END":
			if total++; total > maxRecords {
				return nil, wrong(n, "more than %d records", maxRecords)
			}
			all[k.define] = append(all[k.define], now)
			k = nil
		default:
			if !slices.ContainsFunc(k.fields, func(f field) bool { return f.name == words[0] && !f.comment }) || len(words) < 2 {
				return nil, wrong(n, "%q in DEFINE_%s; allowed: its fields with values", line, k.define)
			}
			now[words[0]] = strings.Join(words[1:], " ")
		}
	}
	if k != nil {
		return nil, tool.Usagef("inventory file (-i) %s: the last record has no END", name)
	}
	return all, s.Err()
}
