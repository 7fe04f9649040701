"""What the engineer who runs Sharewarden needs: to look, to send again, to take it away in order."""
