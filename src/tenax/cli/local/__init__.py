"""The cluster of this machine: started, stopped, looked at, shown, and its database upgraded."""
