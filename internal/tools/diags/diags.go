// Package diags lists the InfiniBand diagnostic tools.
package diags

import (
	"github.com/softvpi/softvpi/internal/tools/ibdiagnet"
	"github.com/softvpi/softvpi/internal/tools/ibnetdiscover"
	"github.com/softvpi/softvpi/internal/tools/ibping"
	"github.com/softvpi/softvpi/internal/tools/ibportstate"
	"github.com/softvpi/softvpi/internal/tools/ibqueryerrors"
	"github.com/softvpi/softvpi/internal/tools/ibroute"
	"github.com/softvpi/softvpi/internal/tools/ibstat"
	"github.com/softvpi/softvpi/internal/tools/osmtest"
	"github.com/softvpi/softvpi/internal/tools/perfquery"
	"github.com/softvpi/softvpi/internal/tools/saquery"
	"github.com/softvpi/softvpi/internal/tools/sminfo"
	"github.com/softvpi/softvpi/internal/tools/smpquery"
	"github.com/softvpi/softvpi/internal/tools/tool"
)

// Tools maps the names of the tools to the tools.
var Tools = map[string]tool.Main{
	"ibdiagpath":    ibdiagnet.Path,
	"ibdiagnet":     ibdiagnet.Main,
	"saquery":       saquery.Main,
	"ibping":        ibping.Main,
	"ibsysstat":     ibping.Sysstat,
	"ibstat":        ibstat.Ibstat,
	"vstat":         ibstat.Vstat,
	"ibaddr":        sminfo.Addresses,
	"ibcacheedit":   ibnetdiscover.CacheEdit,
	"iblinkinfo":    ibnetdiscover.LinkInfo,
	"ibnetdiscover": ibnetdiscover.Main,
	"ibportstate":   ibportstate.Main,
	"ibclearerrors": ibqueryerrors.Clear,
	"ibqueryerrors": ibqueryerrors.Main,
	"ibroute":       ibroute.Main,
	"ibtracert":     ibroute.Trace,
	"perfquery":     perfquery.Main,
	"osmtest":       osmtest.Main,
	"sminfo":        sminfo.Main,
	"smpdump":       smpquery.Dump,
	"smpquery":      smpquery.Main,
}
