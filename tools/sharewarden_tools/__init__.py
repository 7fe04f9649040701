"""Tools around Sharewarden that are never deployed: the lab, the command line, reports."""
