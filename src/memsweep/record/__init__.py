"""What a trial and a study leave behind: written by `trial` and the sweeper, read by `report`."""
