"""What attention costs as a text grows: measured, fitted with a power law, told and drawn; for `study complexity`."""
