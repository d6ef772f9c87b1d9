"""What the papers print, for the tables that show it beside our figures."""
