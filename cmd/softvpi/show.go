package main

import (
	"encoding/json"
	"io"
)

// showFlags are the options of commands that show what the driver answers.
type showFlags struct {
	socketFlag `embed:""`
	JSON       bool `name:"json" help:"Print JSON."`
}

// readable is an answer that has a form for readers beside the one for scripts.
type readable interface{ WriteText(w io.Writer) }

// show writes the answer of a call to the driver, or returns its error.
func show(s *session, asJSON bool, answer readable, err error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return writeJSON(s.env.Stdout, answer)
	}
	answer.WriteText(s.env.Stdout)
	return nil
}

// showAll is show for a list, whose elements follow each other.
func showAll[T any, P interface {
	*T
	readable
}](s *session, asJSON bool, list []T, err error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return writeJSON(s.env.Stdout, list)
	}
	for i := range list {
		P(&list[i]).WriteText(s.env.Stdout)
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
