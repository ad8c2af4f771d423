package opensm

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/softvpi/softvpi/internal/os/inputfile"
	"github.com/softvpi/softvpi/internal/subnet"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

const defaultConfig = "/etc/opensm/opensm.conf"

// unset is how opensm.conf writes a missing text.
const unset = "(null)"

// setting is a line of opensm.conf.
type setting struct {
	key, help string
	get       func(o *options) string
	set       func(o *options, v string) error
}

// settings lists the lines, in groups.
var settings = []struct {
	title string
	lines []setting
}{
	{"Device", []setting{
		hex("guid", "port GUID to bind to, 0 for the first", func(o *options) *uint64 { return &o.guid }),
		hex("m_key", "M_Key of all ports", func(o *options) *uint64 { return &o.cfg.MKey }),
		count("m_key_lease_period", "seconds that an M_Key protects without its manager, 0 forever", 0xffff,
			func(o *options) *uint16 { return &o.cfg.MKeyLease }),
		count("m_key_protection_level", "what the M_Key protects, 0 to 3", 3, func(o *options) *uint8 { return &o.cfg.MKeyProtect }),
		hex("sm_key", "SM_Key that other subnet managers have", func(o *options) *uint64 { return &o.cfg.SMKey }),
		hex("sa_key", "SM_Key of trusted requests to subnet administration", func(o *options) *uint64 { return &o.cfg.SAKey }),
		hex("subnet_prefix", "subnet prefix", func(o *options) *uint64 { return &o.cfg.Prefix }),
		count("lmc", "0 to 7: ports have 2 to the LMC LIDs", 7, func(o *options) *uint8 { return &o.cfg.LMC }),
		count("sm_sl", "service level towards the subnet manager", 15, func(o *options) *uint8 { return &o.cfg.SL }),
		count("packet_life_time", "code of the time that a packet may be in a switch, 20 forever", 31,
			func(o *options) *uint8 { return &o.limits.PacketLife }),
		count("vl_stall_count", "consecutive dropped packets that stall a lane between switches", 7,
			func(o *options) *uint8 { return &o.limits.StallCount }),
		count("leaf_vl_stall_count", "the same, towards adapters and routers", 7,
			func(o *options) *uint8 { return &o.limits.LeafStallCount }),
		count("head_of_queue_lifetime", "code of the time at the head of a queue between switches", 31,
			func(o *options) *uint8 { return &o.limits.HOQLife }),
		count("leaf_head_of_queue_lifetime", "the same, towards adapters and routers", 31,
			func(o *options) *uint8 { return &o.limits.LeafHOQLife }),
		count("max_op_vls", "code of the virtual lanes in use at most, 1 to 5", 5, func(o *options) *uint8 { return &o.limits.MaxVLs }),
		count("subnet_timeout", "code of the time that packets may need", 31, func(o *options) *uint8 { return &o.limits.SubnetTimeout }),
		count("local_phy_errors_threshold", "of trap 129", 15, func(o *options) *uint8 { return &o.limits.LocalPhyErrors }),
		count("overrun_errors_threshold", "of trap 130", 15, func(o *options) *uint8 { return &o.limits.OverrunErrors }),
	}},
	{"Partitions", []setting{
		text("partition_config_file", "partition configuration", func(o *options) *string { return &o.partitions }),
		{"no_partition_enforcement", "TRUE: the same as part_enforce off", func(*options) string { return "FALSE" },
			func(o *options, v string) error {
				off, err := truth(v)
				if off {
					o.cfg.Enforce = subnet.EnforceOff
				}
				return err
			}},
		{"part_enforce", "switches check partitions: both, in, out or off", func(o *options) string { return enforcements[o.cfg.Enforce] },
			setEnforcement},
		flag("allow_both_pkeys", "ports may be full and limited member of one partition",
			func(o *options) *bool { return &o.cfg.AllowBothPKeys }),
		count("sm_assigned_guid", "byte of the GUIDs that are made up for ports that ask for any, 0 for none", 255,
			func(o *options) *uint8 { return &o.cfg.AssignedGUID }),
		count("virt_enable", "virtual ports: 0 leaves them alone, 1 disables and 2 enables them", 2,
			func(o *options) *subnet.Virtualization { return &o.cfg.Virtual }),
	}},
	{"Sweeps", []setting{
		span("sweep_interval", "seconds between sweeps, 0 for none", time.Second, func(o *options) *time.Duration { return &o.cfg.Sweep }),
		flag("reassign_lids", "assign all LIDs anew", func(o *options) *bool { return &o.cfg.Reassign }),
		flag("force_heavy_sweep", "all sweeps are thorough", func(o *options) *bool { return &o.cfg.HeavySweeps }),
		not("sweep_on_trap", "traps cause a sweep", func(o *options) *bool { return &o.cfg.IgnoreTraps }),
	}},
	{"Routing", []setting{
		{"routing_engine", "engines in order of preference, separated by commas",
			func(o *options) string { return orUnset(strings.Join(o.cfg.Engines, ",")) }, func(o *options, v string) error {
				if o.cfg.Engines = nil; v == unset {
					return nil
				}
				return setEngines(o, v)
			}},
		flag("connect_roots", "updn and ftree: also paths between roots", func(o *options) *bool { return &o.cfg.ConnectRoots }),
		text("root_guid_file", "node GUIDs of the roots for updn, one per line", func(o *options) *string { return &o.roots }),
	}},
	{"Several managers", []setting{
		count("sm_priority", "0 to 15: the higher is master", 15, func(o *options) *uint8 { return &o.cfg.Priority }),
		flag("ignore_other_sm", "pretend that there are no others", func(o *options) *bool { return &o.cfg.IgnoreOthers }),
		span("sminfo_polling_timeout", "milliseconds between a standby's polls", time.Millisecond,
			func(o *options) *time.Duration { return &o.cfg.PollInterval }),
		count("polling_retry_number", "this many unanswered polls mean that the master is dead", 1000,
			func(o *options) *int { return &o.cfg.PollRetries }),
		flag("honor_guid2lid_file", "honor the guid2lid file when taking over as master",
			func(o *options) *bool { return &o.cfg.HonorLIDs }),
	}},
	{"Times", []setting{
		count("max_wire_smps", "most requests in flight", subnet.MaxWindow, func(o *options) *int { return &o.cfg.Window }),
		span("transaction_timeout", "milliseconds of a request", time.Millisecond,
			func(o *options) *time.Duration { return &o.cfg.Timeout }),
		{"transaction_retries", "of a request", func(o *options) string { return strconv.Itoa(max(0, o.cfg.Retries)) },
			func(o *options, v string) error {
				n, err := whole(v, 100)
				if o.cfg.Retries = n; n == 0 {
					o.cfg.Retries = -1
				}
				return err
			}},
	}},
	{"Log and others", []setting{
		flag("daemon", "run in the background", func(o *options) *bool { return &o.daemon }),
		flag("no_clients_rereg", "clients are not asked to subscribe and join again",
			func(o *options) *bool { return &o.cfg.NoReregister }),
		flag("disable_multicast", "no multicast", func(o *options) *bool { return &o.cfg.NoMulticast }),
		hex8("log_flags", "what is logged: 0x01 errors, 0x02 infos, 0x04 verbose, 0x40 routing",
			func(o *options) *uint8 { return &o.flags }),
		text("log_file", "of the log, or stdout", func(o *options) *string { return &o.logFile }),
		count("log_max_size", "size in MB at which the log starts over, 0 for none", 1<<20, func(o *options) *int { return &o.logLimit }),
		not("accum_log_file", "append to the log of the last run", func(o *options) *bool { return &o.erase }),
		text("log_prefix", "prefix of every line of the log", func(o *options) *string { return &o.prefix }),
		text("sa_db_file", "what ports had registered, in the format of opensm-sa.dump, to be read",
			func(o *options) *string { return &o.saLoad }),
		flag("sa_db_dump", "write opensm-sa.dump", func(o *options) *bool { return &o.saDump }),
		text("dump_files_dir", "directory of opensm-sa.dump", func(o *options) *string { return &o.dumps }),
		text("prefix_routes_file", "routers by subnet prefix", func(o *options) *string { return &o.routes }),
	}},
	{"Quality of service", append([]setting{flag("qos", "set the tables of service levels and arbitration",
		func(o *options) *bool { return &o.qos }),
		text("qos_policy_file", "service levels of paths, with qos TRUE", func(o *options) *string { return &o.policy })},
		slices.Concat(lanesOf("", 0), lanesOf("ca_", laneCA), lanesOf("swe_", laneSwitch), lanesOf("rtr_", laneRouter))...)},
}

// also are other names of keys: NVIDIA's OpenSM says virt_enabled, and WinOF-2 24.4, Configuring IPoIB in SR-IOV, virt_enable.
var also = map[string]string{"virt_enabled": "virt_enable"}

// foreign are keys that not every OpenSM knows, with the value that says nothing: such a line is written as a comment.
var foreign = map[string]string{"virt_enable": "0"}

func find(key string) *setting {
	if name, ok := also[key]; ok {
		key = name
	}
	for _, g := range settings {
		for i := range g.lines {
			if g.lines[i].key == key {
				return &g.lines[i]
			}
		}
	}
	return nil
}

// fixed lists OpenSM's keys that have no effect here, with the only value allowed: OpenSM's default, so
// that a file written by OpenSM can be read as long as they are unchanged.
var fixed = map[string]string{
	"m_key_lookup": "TRUE", "lmc_esp0": "FALSE", "force_link_speed": "15", "force_link_speed_ext": "31", "force_link_width": "255",
	"fdr10": "1", "use_mfttop": "TRUE",
	"keep_pkey_indexes": "TRUE", "port_profile_switch_nodes": "FALSE", "port_prof_ignore_file": unset, "hop_weights_file": unset,
	"port_search_ordering_file": unset,
	"avoid_throttled_links":     "FALSE", "use_ucast_cache": "FALSE", "lid_matrix_dump_file": unset, "lfts_file": unset,
	"cn_guid_file": unset, "io_guid_file": unset,
	"quasi_ftree_indexing": "FALSE", "max_reverse_hops": "0", "ids_guid_file": unset, "guid_routing_order_file": unset,
	"do_mesh_analysis": "FALSE", "lash_start_vl": "0",
	"nue_max_num_vls": "1", "nue_include_switches": "FALSE", "port_shifting": "FALSE", "scatter_ports": "0",
	"guid_routing_order_no_scatter": "FALSE",
	"torus_config":                  "/etc/opensm/torus-2QoS.conf", "max_wire_smps2": "4", "max_smps_timeout": "600000",
	"long_transaction_timeout": "500",
	"max_msg_fifo_timeout":     "10000", "single_thread": "FALSE", "sm_inactive": "FALSE", "babbling_port_policy": "FALSE",
	"drop_event_subscriptions":          "FALSE",
	"ipoib_mcgroup_creation_validation": "TRUE", "mcgroup_join_validation": "TRUE", "use_original_extended_sa_rates_only": "FALSE",
	"use_optimized_slvl":     "FALSE",
	"fsync_high_avail_files": "TRUE", "perfmgr": "FALSE", "perfmgr_redir": "TRUE", "perfmgr_sweep_time_s": "180",
	"perfmgr_max_outstanding_queries": "500",
	"perfmgr_ignore_cas":              "FALSE", "perfmgr_rm_nodes": "TRUE", "perfmgr_log_errors": "TRUE", "perfmgr_query_cpi": "TRUE",
	"perfmgr_xmit_wait_log":       "FALSE",
	"perfmgr_xmit_wait_threshold": "65535", "event_db_dump_file": unset, "event_plugin_name": unset, "event_plugin_options": unset,
	"node_name_map_name": unset,
	"force_log_flush":    "FALSE", "per_module_logging_file": "/etc/opensm/per-module-logging.conf", "enable_quirks": "FALSE",
	"exit_on_fatal": "TRUE", "console": "off", "console_port": "10000", "suppress_sl2vl_mad_status_errors": "FALSE",
	"qos_sw0_max_vls": "0", "qos_sw0_high_limit": "-1", "qos_sw0_vlarb_high": unset, "qos_sw0_vlarb_low": unset, "qos_sw0_sl2vl": unset,
	"congestion_control": "FALSE",
	"cc_key":             "0x0000000000000000", "cc_max_outstanding_mads": "500", "cc_sw_cong_setting_control_map": "0x0",
	"cc_sw_cong_setting_victim_mask": "0x" + strings.Repeat("0", 64), "cc_sw_cong_setting_credit_mask": "0x" + strings.Repeat("0", 64),
	"cc_sw_cong_setting_threshold": "0x00", "cc_sw_cong_setting_packet_size": "0", "cc_sw_cong_setting_credit_starvation_threshold": "0x00",
	"cc_sw_cong_setting_credit_starvation_return_delay": "0:0", "cc_sw_cong_setting_marking_rate": "0",
	"cc_ca_cong_setting_port_control": "0x0000",
	"cc_ca_cong_setting_control_map":  "0x0000", "cc_ca_cong_setting_ccti_timer": "0 0", "cc_ca_cong_setting_ccti_increase": "0 0",
	"cc_ca_cong_setting_trigger_threshold": "0 0", "cc_ca_cong_setting_ccti_min": "0 0", "cc_cct": unset,
	"consolidate_ipv6_snm_req": "FALSE",
}

// readConfig reads opensm.conf: per line a key and a value, separated by a blank or =. An error says which
// line is wrong.
func (o *options) readConfig(r io.Reader) error {
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, value := line, ""
		if i := strings.IndexAny(line, " \t="); i >= 0 {
			key, value = line[:i], strings.TrimSpace(strings.TrimLeft(line[i:], " \t="))
		}
		if err := o.setLine(key, value); err != nil {
			return fmt.Errorf("line %d: %s %q: %w", n, key, value, err)
		}
	}
	return s.Err()
}

func (o *options) setLine(key, value string) error {
	if x := find(key); x != nil {
		return x.set(o, value)
	}
	only, ok := fixed[key]
	switch {
	case !ok:
		return fmt.Errorf("there is no such key; -c writes a file with all keys")
	case value != only:
		return fmt.Errorf("not supported; allowed: %s, or leave the line out", only)
	}
	return nil
}

// loadConfig reads the options file. Without a name it reads the default one if that exists.
func (o *options) loadConfig(name string) error {
	given := name != ""
	if !given {
		name = defaultConfig
	}
	f, err := inputfile.Open(name, inputfile.Text)
	if err != nil {
		if !given && os.IsNotExist(err) {
			return nil
		}
		return tool.Usagef("options file (-F): %v", err)
	}
	defer f.Close()
	if err := o.readConfig(f); err != nil {
		return tool.Usagef("options file %s: %v", name, err)
	}
	return nil
}

// writeConfig writes the current options as a file for readConfig.
func (o *options) writeConfig(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, g := range settings {
		fmt.Fprintf(b, "#\n# %s\n#\n\n", g.title)
		for _, x := range g.lines {
			comment := ""
			if none, ok := foreign[x.key]; ok && x.get(o) == none {
				comment = "#"
			}
			fmt.Fprintf(b, "# %s\n%s%s %s\n\n", x.help, comment, x.key, x.get(o))
		}
	}
	return b.Flush()
}

// createConfig writes the file of -c.
func (o *options) createConfig() error {
	f, err := os.Create(o.create)
	if err != nil {
		return tool.Usagef("options file to be written (-c): %v", err)
	}
	err = o.writeConfig(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
