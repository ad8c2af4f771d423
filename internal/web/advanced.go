package web

import (
	"github.com/softvpi/softvpi/internal/api"
)

// keyGroup is a table of the manuals with those keys that the device manager shows.
type keyGroup struct {
	Name string
	Keys []keyForm
}

// keyForm is a key with what is wrong with the value that was entered, if anything.
type keyForm struct {
	api.Setting
	ID      string // in the page
	Entered string // what the field shows
	Wrong   string
}

// advanced shows those keys of an adapter that the catalogue marks for the device manager.
func (s *Server) advanced(q *request) error { return s.showAdvanced(q, "", "", nil) }

// showAdvanced shows them, possibly one of them with a refused value.
func (s *Server) showAdvanced(q *request, key, entered string, wrong error) error {
	v, err := s.adapterView(q, "advanced")
	if err != nil {
		return err
	}
	list, err := s.client.Settings(q.r.Context(), v.Adapter.Name)
	if err != nil {
		return err
	}
	var groups []keyGroup
	for _, x := range list {
		if !x.UI {
			continue
		}
		if n := len(groups); n == 0 || groups[n-1].Name != x.Group {
			groups = append(groups, keyGroup{Name: x.Group})
		}
		f := keyForm{Setting: x, ID: "key-" + x.Name, Entered: x.Value}
		if x.Stored != nil {
			f.Entered = *x.Stored
		} else if x.Automatic {
			f.Entered = ""
		}
		if x.Name == key && wrong != nil {
			f.Entered, f.Wrong, v.Problem = entered, sentence(wrong.Error()), sentence(wrong.Error())
		}
		g := &groups[len(groups)-1]
		g.Keys = append(g.Keys, f)
	}
	v.Data = groups
	return s.show(q, "advanced", v)
}

// setKey sets a key of an adapter, or resets it to its default.
func (s *Server) setKey(q *request) error {
	form, ctx, name := q.r.PostForm, q.r.Context(), q.r.PathValue("name")
	key, value := form.Get("key"), form.Get("value")
	var n api.Notices
	var err error
	text := key + " is " + value + " now."
	if form.Has("default") {
		n, err = s.client.Reset(ctx, name, key)
		text = key + " has its default again."
	} else {
		n, err = s.client.Set(ctx, name, key, value)
	}
	if err != nil {
		return s.showAdvanced(q, key, value, err)
	}
	for _, x := range n.Notices {
		text += " It " + x.Text + "."
	}
	return s.done(q, text, adapterURL(name, "/advanced")+"#key-"+key)
}
