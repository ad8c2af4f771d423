package powershell

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxErrors is how many errors $Error keeps, as $MaximumErrorCount says in Windows PowerShell.
const maxErrors = 256

// recordBytes is what an error record costs, roughly.
const recordBytes = 64 * valueBytes

// failed reports an error after which statements go on, as an action says; an error: they do not.
func (in *Interpreter) failed(e *RunError, action string) error {
	if in.ends(e) {
		return e
	}
	in.global.put("?", false)
	switch strings.ToLower(action) {
	case "ignore":
		return nil
	case "silentlycontinue":
		return in.remember(e)
	case "stop":
		e.final = true
		return e
	}
	in.failures++
	if in.complaints != nil {
		return errors.Join(in.complaints(e.asRecord()), in.remember(e))
	}
	line := oneLine(e.Error())
	if in.said += len(line); in.said > in.limits.Output {
		return &LimitError{"bytes of messages", in.limits.Output}
	}
	if in.cfg.Records {
		return errors.Join(writeRecord(in.out, e.asLine(), e.Err.Error()), in.remember(e))
	}
	in.sayf(errorRecord, "%s", line)
	return in.remember(e)
}

// ends reports whether nothing can run after an error: a limit was exceeded, or the script was interrupted.
func (in *Interpreter) ends(err error) bool {
	var limit *LimitError
	return errors.As(err, &limit) || in.ctx.Err() != nil
}

// goOn reports an error that has ended a statement, so that the next one can run; an error: it cannot (about_Error_Handling). In a try
// every such error ends its body. What throw says ends all statements around it, unless $ErrorActionPreference silences it.
func (in *Interpreter) goOn(err error) error {
	var e *RunError
	if err == nil || in.tries > 0 || in.ends(err) || !errors.As(err, &e) {
		return err
	}
	action := strings.ToLower(in.preference())
	switch {
	case e.final && e.thrown && (action == "silentlycontinue" || action == "ignore"):
		in.global.put("?", false)
		return in.remember(e)
	case e.final:
		return err
	}
	return in.failed(e, action)
}

// remember puts an error into $Error, the newest first.
func (in *Interpreter) remember(e *RunError) error {
	if e.remembered {
		return nil
	}
	e.remembered = true
	in.errors = slices.Insert(in.errors, 0, any(e.asRecord()))
	in.errors = in.errors[:min(len(in.errors), maxErrors)]
	return in.spend(recordBytes)
}

// asRecord returns the error as scripts see it: an error record.
func (e *RunError) asRecord() *Object {
	if e.record != nil {
		return e.record
	}
	kind := exceptionOf(e)
	x := e.exception
	if x == nil {
		x = newException(kind, e.Err.Error())
		if kind == divisionException {
			x = newException(runtimeException, e.Err.Error()).With("InnerException", newException(kind, e.Err.Error()))
		}
	}
	short := kind[strings.LastIndexByte(kind, '.')+1:]
	category := map[string]string{bindingException: "InvalidArgument", noCommandException: "ObjectNotFound", castException: "InvalidArgument"}[kind]
	id := strings.TrimSuffix(short+","+e.Command, ",")
	switch {
	case e.thrown:
		category, id = "OperationStopped", e.Err.Error()
	case category == "":
		category = "NotSpecified"
	}
	about := NewObject("System.Management.Automation.ErrorCategoryInfo").With("Category", category).With("Activity", e.Command).
		With("Reason", short)
	about.text = fmt.Sprintf("%s: (:) [%s], %s", category, e.Command, short)
	where := NewObject("System.Management.Automation.InvocationInfo").With("MyCommand", e.Command).With("ScriptLineNumber", int64(e.Line)).
		With("OffsetInLine", int64(e.Column))
	o := NewObject("System.Management.Automation.ErrorRecord").With("Exception", x).With("TargetObject", e.target).
		With("CategoryInfo", about).With("FullyQualifiedErrorId", id).With("InvocationInfo", where)
	o.text, o.failure, e.record = e.Err.Error(), e, o
	return o
}

// thrown is the error of throw: of a record again, of an exception, or of any value (about_Throw).
func thrown(at Position, v any) *RunError {
	o, ok := v.(*Object)
	switch {
	case ok && o.failure != nil:
		again := *o.failure
		again.final, again.thrown = true, true
		return &again
	case ok && exceptionNamed(o.Type) != "":
		m, _ := o.Get("Message")
		return &RunError{Position: at, Err: errors.New(Text(m)), final: true, thrown: true, exception: o}
	}
	return &RunError{Position: at, Err: errors.New(Text(v)), final: true, thrown: true, target: v}
}
