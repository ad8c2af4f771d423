package powershell

import (
	"slices"
	"strings"
)

func sortObjects(c *Call, list []any) error {
	cols, err := columns(c.Value("Property"))
	if err != nil {
		return err
	}
	if len(cols) == 0 {
		cols = []column{{}}
	}
	keys := make([][]any, len(list))
	order := make([]int, len(list))
	for i, v := range list {
		order[i] = i
		for _, col := range cols {
			k := v
			if col.name != "" {
				if k, err = col.value(c.in, v); err != nil {
					return err
				}
			}
			keys[i] = append(keys[i], k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		for i := range cols {
			n, err := compare(keys[a][i], keys[b][i], false)
			if err != nil {
				n = strings.Compare(Text(keys[a][i]), Text(keys[b][i]))
			}
			if n != 0 {
				if c.Bool("Descending") {
					n = -n
				}
				return n
			}
		}
		return 0
	})
	for n, i := range order {
		if n > 0 && c.Bool("Unique") && sameKeys(keys[i], keys[order[n-1]]) {
			continue
		}
		c.Emit(list[i])
	}
	return nil
}

func sameKeys(a, b []any) bool {
	return slices.EqualFunc(a, b, func(x, y any) bool { return Text(x) == Text(y) })
}

func measure(c *Call, list []any) error {
	out := NewObject("Measure").With("Count", int64(len(list)))
	var sum float64
	var least, most any
	n := 0
	for _, v := range list {
		if name := c.Text("Property"); name != "" {
			v = c.in.property(v, name)
		}
		if v == nil || !c.Bool("Sum") && !c.Bool("Average") && !c.Bool("Minimum") && !c.Bool("Maximum") {
			continue
		}
		x, err := number(v)
		if err != nil {
			return err
		}
		sum += float(x)
		if n == 0 || float(x) < float(least) {
			least = x
		}
		if n == 0 || float(x) > float(most) {
			most = x
		}
		n++
	}
	for _, p := range []Property{{"Average", sum / float64(max(1, n))}, {"Sum", sum}, {"Maximum", most}, {"Minimum", least}} {
		if c.Bool(p.Name) {
			out.With(p.Name, p.Value)
		}
	}
	c.Emit(out)
	return nil
}

func group(c *Call, list []any) error {
	var names []string
	groups := map[string][]any{}
	for _, v := range list {
		n := Text(v)
		if c.Given("Property") {
			n = Text(c.in.property(v, c.Text("Property")))
		}
		if groups[n] == nil {
			names = append(names, n)
		}
		groups[n] = append(groups[n], v)
	}
	for _, n := range names {
		c.Emit(NewObject("Group", "Count", "Name").With("Count", int64(len(groups[n]))).With("Name", n).With("Group", groups[n]))
	}
	return nil
}

func members(c *Call, list []any) error {
	seen := map[string]bool{}
	for _, v := range list {
		o, ok := v.(*Object)
		if !ok || seen[o.Type] {
			continue
		}
		seen[o.Type] = true
		for _, p := range o.properties {
			c.Emit(NewObject("Member").With("TypeName", o.Type).With("Name", p.Name).With("MemberType", "Property").
				With("Definition", typeName(p.Value)))
		}
	}
	return nil
}
